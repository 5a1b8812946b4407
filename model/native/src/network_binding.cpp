// What Python sees of a network's weights: memory, matrices, norms, the network they make.
#include "network_binding.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace dragoman;
using SharedMemory = std::shared_ptr<WeightMemory>;

// Memory that has matrices packed already: a buffer that nobody writes, such as a mapped file. It is let
// go under the interpreter's lock, as networks and sessions are.
SharedMemory lent_memory(const py::buffer& buffer) {
  const auto lent = std::make_shared<py::buffer_info>(buffer.request());
  require(lent->ndim == 1 && lent->itemsize == 1 && lent->strides[0] == 1, "memory must be bytes");
  return std::make_shared<WeightMemory>(static_cast<const std::byte*>(lent->ptr),
                                        static_cast<std::size_t>(lent->size), lent);
}

// The parts of a memory as bytes that keep it.
py::list parts_of(const SharedMemory& memory) {
  py::list views;
  for (const WeightMemory::Part& part : memory->parts()) {
    py::array_t<std::uint8_t> bytes(static_cast<py::ssize_t>(part.size),
                                    reinterpret_cast<const std::uint8_t*>(part.data),
                                    py::cast(memory));
    bytes.attr("flags").attr("writeable") = false;
    views.append(py::memoryview(bytes));
  }
  return views;
}

SharedMatrix make_matrix(const Array<std::int8_t>& quanta, const Array<float>& scale,
                         const std::optional<Array<float>>& bias, float padding,
                         SharedMemory memory) {
  if (!memory) memory = std::make_shared<WeightMemory>();
  require(quanta.ndim() == 2 && scale.ndim() == 1 && scale.shape(0) == quanta.shape(0),
          "quanta must be (outputs, inputs) and scale (outputs,)");
  require(!bias || (bias->ndim() == 1 && bias->shape(0) == quanta.shape(0)),
          "bias must be (outputs,)");
  const py::gil_scoped_release free;
  return std::make_shared<Matrix>(std::move(memory), quanta.data(), scale.data(),
                                  bias ? bias->data() : nullptr,
                                  static_cast<int>(quanta.shape(0)),
                                  static_cast<int>(quanta.shape(1)), padding);
}

SharedMatrix packed_in(SharedMemory memory, std::size_t offset, int num_outputs, int num_inputs) {
  constexpr int kMost = 1 << 28;
  require(num_outputs >= 1 && num_outputs <= kMost && num_inputs >= 1 && num_inputs <= kMost,
          "a matrix must have from 1 to 2^28 outputs and inputs");
  return std::make_shared<Matrix>(std::move(memory), offset, num_outputs, num_inputs);
}

SharedNorm make_norm(const Array<float>& weight, const std::optional<Array<float>>& bias,
                     float epsilon, bool is_rms) {
  require(weight.ndim() == 1 && (!bias || bias->size() == weight.size()),
          "weight and bias must be (width,)");
  return std::make_shared<Norm>(weight.data(), bias ? bias->data() : nullptr,
                                static_cast<int>(weight.size()), epsilon, is_rms);
}

Positions make_positions(const std::optional<Array<float>>& table, const Network& network) {
  Positions positions;
  if (!table) return positions;
  require(table->ndim() == 2 && table->shape(0) == network.max_positions &&
              table->shape(1) == network.d_model,
          "positions must be (max_positions, d_model)");
  positions.d_model = network.d_model;
  const auto values = std::make_shared<Buffer<float>>();
  values->reserve(table->size());
  std::copy_n(table->data(), table->size(), values->data());
  positions.values = values;
  return positions;
}

RelativeBias make_bias(const std::optional<Array<float>>& scores, const Network& network) {
  if (!scores) return {};
  require(scores->ndim() == 2 && scores->shape(0) == network.heads.num_heads &&
              scores->shape(1) == 2 * network.max_positions - 1,
          "a bias must be (num_heads, 2 max_positions - 1)");
  return {scores->data(), network.heads.num_heads, network.max_positions};
}

Activation activation_of(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu-tanh") return Activation::kGeluTanh;
  if (name == "gelu-sigmoid") return Activation::kGeluSigmoid;
  if (name == "silu") return Activation::kSilu;
  throw std::invalid_argument("activation must be relu, gelu, gelu-tanh, gelu-sigmoid or silu");
}

DecoderCell decoder_cell_of(const std::string& name) {
  std::string names;
  for (const CellKind& kind : kCellKinds) {
    if (name == kind.name) return kind.cell;
    names += (names.empty() ? "" : " or ") + std::string(kind.name);
  }
  throw std::invalid_argument("decoder_cell must be " + names);
}

int num_cell_matrices(const Network& network) {
  for (const CellKind& kind : kCellKinds) {
    if (kind.cell == network.decoder_cell) return kind.num_matrices;
  }
  throw std::logic_error("a decoder cell has no kind");
}

std::shared_ptr<Network> make_network(
    int d_model, int encoder_d_ff, int decoder_d_ff, int max_positions,
    std::tuple<int, int, int, float> heads, bool is_pre_norm, const std::string& activation,
    bool is_gated, const std::string& decoder_cell, float embedding_factor, float output_factor,
    SharedMatrix source_table, SharedMatrix target_table, SharedMatrix output,
    const std::optional<Array<float>>& source_positions,
    const std::optional<Array<float>>& target_positions,
    const std::optional<Array<float>>& encoder_bias,
    const std::optional<Array<float>>& decoder_bias, const std::vector<int>& suppressed) {
  auto network = std::make_shared<Network>();
  network->d_model = d_model;
  network->encoder_d_ff = encoder_d_ff;
  network->decoder_d_ff = decoder_d_ff;
  network->max_positions = max_positions;
  network->heads = {std::get<0>(heads), std::get<1>(heads), std::get<2>(heads),
                    std::get<3>(heads)};
  require(network->heads.key_width % kLanes == 0 && network->heads.value_width % kLanes == 0,
          "head widths must be multiples of 16");
  network->is_pre_norm = is_pre_norm;
  network->activation = activation_of(activation);
  network->is_gated = is_gated;
  network->decoder_cell = decoder_cell_of(decoder_cell);
  network->embedding_factor = embedding_factor;
  network->output_factor = output_factor;
  network->source_table = std::move(source_table);
  network->target_table = std::move(target_table);
  network->output = std::move(output);
  network->source_positions = make_positions(source_positions, *network);
  const bool are_alike =
      source_positions && target_positions && source_positions->is(*target_positions);
  network->target_positions =
      are_alike ? network->source_positions : make_positions(target_positions, *network);
  network->encoder_bias = make_bias(encoder_bias, *network);
  network->decoder_bias = make_bias(decoder_bias, *network);
  network->is_suppressed.assign(network->output->num_outputs(), 0);
  for (const int token : suppressed) network->is_suppressed.at(token) = 1;
  return network;
}

void add_decoder_layer(Network& network, const std::vector<SharedMatrix>& cell,
                       SharedMatrix cross_query, SharedMatrix cross_key_value,
                       SharedMatrix cross_output, SharedMatrix up, SharedMatrix down,
                       SharedNorm cell_norm, SharedNorm cross_norm, SharedNorm feed_forward_norm) {
  require(static_cast<int>(cell.size()) == num_cell_matrices(network) &&
              std::find(cell.begin(), cell.end(), nullptr) == cell.end(),
          "a decoder layer must have the matrices of its cell");
  network.decoder.push_back({cell, cross_query, cross_key_value, cross_output, up, down, cell_norm,
                             cross_norm, feed_forward_norm});
}

}  // namespace

void bind_network(py::module_& module) {
  module.attr("LAYOUT") = kLayout;
  py::class_<WeightMemory, SharedMemory>(module, "WeightMemory")
      .def(py::init<>())
      .def(py::init(&lent_memory), py::arg("packed"))
      .def("trim", &WeightMemory::trim)
      .def_property_readonly("parts", &parts_of);
  py::class_<Matrix, SharedMatrix>(module, "Matrix")
      .def(py::init(&make_matrix), py::arg("quanta"), py::arg("scale"), py::arg("bias"),
           py::arg("padding") = 0.0f, py::arg("memory") = SharedMemory())
      .def_static("packed_in", &packed_in, py::arg("memory"), py::arg("offset"),
           py::arg("num_outputs"), py::arg("num_inputs"))
      .def_property_readonly("offset", &Matrix::offset)
      .def_property_readonly("num_outputs", &Matrix::num_outputs)
      .def_property_readonly("num_inputs", &Matrix::num_inputs);
  py::class_<Norm, SharedNorm>(module, "Norm")
      .def(py::init(&make_norm), py::arg("weight"), py::arg("bias"), py::arg("epsilon"),
           py::arg("is_rms"));
  py::class_<Network, std::shared_ptr<Network>>(module, "Network")
      .def(py::init(&make_network), py::kw_only(), py::arg("d_model"), py::arg("encoder_d_ff"),
           py::arg("decoder_d_ff"), py::arg("max_positions"), py::arg("heads"),
           py::arg("is_pre_norm"), py::arg("activation"), py::arg("is_gated"),
           py::arg("decoder_cell"), py::arg("embedding_factor"), py::arg("output_factor"),
           py::arg("source_table"), py::arg("target_table"), py::arg("output"),
           py::arg("source_positions"), py::arg("target_positions"), py::arg("encoder_bias"),
           py::arg("decoder_bias"), py::arg("suppressed"))
      .def("add_encoder_layer",
           [](Network& network, SharedMatrix query_key_value, SharedMatrix attention_output,
              SharedMatrix up, SharedMatrix down, SharedNorm attention_norm,
              SharedNorm feed_forward_norm) {
             network.encoder.push_back(
                 {query_key_value, attention_output, up, down, attention_norm, feed_forward_norm});
           },
           py::kw_only(), py::arg("query_key_value"), py::arg("attention_output"), py::arg("up"),
           py::arg("down"), py::arg("attention_norm"), py::arg("feed_forward_norm"))
      .def("add_decoder_layer", &add_decoder_layer, py::kw_only(), py::arg("cell"),
           py::arg("cross_query"), py::arg("cross_key_value"), py::arg("cross_output"),
           py::arg("up"), py::arg("down"), py::arg("cell_norm"), py::arg("cross_norm"),
           py::arg("feed_forward_norm"))
      .def("set_embedding_norms",
           [](Network& network, SharedNorm encoder, SharedNorm decoder) {
             network.encoder_embedding_norm = encoder;
             network.decoder_embedding_norm = decoder;
           })
      .def("set_final_norms", [](Network& network, SharedNorm encoder, SharedNorm decoder) {
        network.encoder_norm = encoder;
        network.decoder_norm = decoder;
      });
}
