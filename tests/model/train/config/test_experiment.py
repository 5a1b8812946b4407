import inspect
import json
from pathlib import Path
from typing import get_args

import pytest

from model.config import Activation, NormKind, PositionKind
from model.errors import ConfigError
from model.offline.evaluate import TOKENIZERS
from model.offline.translator import Translator
from model.train.config.experiment import Experiment, read_experiment
from model.train.config.run import MAX_BEAM_SIZE, BleuTokenizer

MINIMAL = """
name: tiny
licence: CC0-1.0
data:
  folder: en-zh
  source_language: en
  target_language: zh
  train: [{name: talk, licence: CC0-1.0, copies: 2}]
  dev: [held-out]
run: {max_updates: 10}
"""
SEVERAL = """
name: tiny
licence: CC0-1.0
data:
  pairs:
    - folder: en-zh
      source_language: en
      target_language: zh
      train: [{name: talk, licence: CC0-1.0}]
      dev: [held-out]
    - {folder: en-zh, source_language: zh, target_language: en,
       train: [{name: talk, licence: CC0-1.0, %s}],
       dev: %s}
run: {max_updates: 10}
"""


def read(tmp_path: Path, text: str) -> Experiment:
    path = tmp_path / "tiny.yaml"
    path.write_text(text, encoding="utf-8")
    return read_experiment(path)


def test_a_minimal_file_is_an_experiment(tmp_path: Path) -> None:
    experiment = read(tmp_path, MINIMAL)
    assert experiment.data.train[0].copies == 2
    assert experiment.data.dev == ("held-out",)
    assert experiment.run.max_updates == 10
    assert experiment.optimiser.beta2 == 0.98


def test_numbers_that_yaml_reads_as_text_are_numbers(tmp_path: Path) -> None:
    experiment = read(tmp_path, MINIMAL + "schedule: {peak: 1e-3}\noptimiser: {epsilon: 1e-9}\n")
    assert experiment.schedule.peak == 1e-3
    assert experiment.optimiser.epsilon == 1e-9


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("nmae: x", "nmae is unknown; known here: data, description"),
        (
            "network: {d_mdoel: 8, heads: 2}",
            r"network.d_mdoel is unknown; known here: act.*\n.*:11: network.heads is unknown; ",
        ),
        ("vocabulary: {size: many}", "vocabulary.size is 'many'; it must be an integer"),
        ("vocabulary: {size: true}", "vocabulary.size is True; it must be an integer"),
        ("vocabulary: {is_joint: 1}", "vocabulary.is_joint is 1; it must be true or false"),
        (
            "vocabulary: {normalisation: nfx}",
            "vocabulary.normalisation is 'nfx'; it must be 'nmt_nfkc', 'nfkc', 'nmt_nfkc_cf',",
        ),
        ("vocabulary: {kind: word}", "vocabulary.kind is 'word'; it must be 'bpe' or 'unigram'"),
        ("schedule: {peak: fast}", "schedule.peak is 'fast'; it must be a finite number"),
        ("schedule: [1]", r"schedule is \[1\]; it must be a mapping"),
        ("optimiser: {label_smoothing: 1.0}", "optimiser.label_smoothing is 1.0; it must be in"),
        ("optimiser: {ema_decay: 1.0}", r"optimiser.ema_decay is 1.0; it must be in \[0, 1\)"),
        ("optimiser: {rdrop_alpha: -1}", "optimiser.rdrop_alpha is -1.0; it must be at least 0"),
        ("optimiser: {rdrop_alpha: .inf}", "optimiser.rdrop_alpha is inf; it must be at least 0"),
        (
            "schedule: {kind: linear}",
            "schedule.kind is 'linear'; it must be 'noam', 'inverse-sqrt', 'cosine' or",
        ),
        ("schedule: {floor: 1}", "schedule.floor is 1.0; it must be from 0 to schedule.peak"),
        ("description: [a]", r"description is \['a'\]; it must be a string"),
        (r'description: "a \ud83d"', r"description has \\ud83d, half of a surrogate pair; it must"),
        (
            r'vocabulary: {user_symbols: [a, "\ude00"]}',
            r"vocabulary.user_symbols\[1\] has \\ude00, half",
        ),
        (
            r'vocabulary: {denormalisation: {"\ud83d.": x}}',
            r"vocabulary.denormalisation has \\ud83d, half",
        ),
        ("network: {d_ff: 1048577}", "network.d_ff is 1048577; a checkpoint has at most 1048576"),
        (
            "network: {decoder_d_ff: 1048577}",
            "network.decoder_d_ff is 1048577; a checkpoint has at",
        ),
        (
            "network: {num_decoder_layers: 1025}",
            "network.num_decoder_layers is 1025; a checkpoint has at most 1024",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_file(tmp_path: Path, addition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"tiny\.yaml:\d+: {message}"):
        read(tmp_path, MINIMAL + addition)


def test_halves_of_a_character_are_joined_as_json_means_them(tmp_path: Path) -> None:
    name, rules = json.dumps("a \U0001f408"), json.dumps({"\U0001f600": "\U0001f408"})
    assert r"\ud83d\udc08" in name
    text = MINIMAL.replace("name: tiny", f"name: {name}")
    experiment = read(tmp_path, f"{text}vocabulary: {{denormalisation: {rules}}}\n")
    assert experiment.name == "a \U0001f408"
    assert experiment.vocabulary.denormalisation == {"\U0001f600": "\U0001f408"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: tiny\n", "", "name is missing"),
        ("name: tiny\n", "name: ' '\n", r"tiny\.yaml:2: name is ' '; it must not be empty"),
        (
            "name: tiny\n",
            'name: "a\\eb"\n',
            r"tiny\.yaml:2: name is 'a\\x1bb'; it must have no control",
        ),
        (
            "licence: CC0-1.0\n",
            "licence: ''\n",
            r"tiny\.yaml:3: licence is ''; it must not be empty",
        ),
        ("  folder: en-zh\n", "", "data.folder is missing"),
        ("licence: CC0-1.0, copies", "copies", r"data.train\[0\].licence is missing"),
        ("copies: 2", "copies: 0", r"data.train\[0\].copies is 0; it must be from 0.000001"),
        ("[{name: talk, licence: CC0-1.0, copies: 2}]", "[]", "data.train names no corpus"),
        ("[held-out]", "held-out", "data.dev is 'held-out'; it must be a list"),
        ("max_updates: 10", "max_updates: 0", "the run has no end"),
        ("max_updates: 10", "max_updates: -1", "run.max_updates is -1; it must be at least 0"),
        (
            "max_updates: 10",
            "max_updates: 10, max_skipped_updates: -1",
            "run.max_skipped_updates is -1; it must be at least 0",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, save_every_updates: -1",
            "run.save_every_updates is -1; it must be at least 0",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, metric: ter",
            "run.metric is 'ter'; it must be 'bleu', 'chrf' or 'loss'",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, metric: chrf, score_dev: false",
            "run.metric is 'chrf'; it must be loss when run.score_dev is false",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, bleu_tokenizer: moses",
            "run.bleu_tokenizer is 'moses'; it must be '13a', 'intl'",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, compile: 1",
            "run.compile is 1; it must be true or false",
        ),
    ],
)
def test_a_file_that_lacks_something_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in MINIMAL
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, MINIMAL.replace(old, new))


def test_snapshots_go_by_bleu_or_else_by_loss_unless_the_file_says_so(tmp_path: Path) -> None:
    metrics = [
        read(tmp_path, MINIMAL.replace("max_updates: 10", f"max_updates: 10{more}"))
        for more in ("", ", score_dev: false", ", metric: chrf", ", metric: loss")
    ]
    assert [experiment.run.snapshot_metric for experiment in metrics] == [
        "bleu",
        "loss",
        "chrf",
        "loss",
    ]


def test_the_tokenizers_are_those_of_the_scores() -> None:
    assert get_args(BleuTokenizer) == TOKENIZERS


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("  dev: [held-out]\n", "  dev: [held-out]\n  dve: [x]\n", "10: data.dve is unknown"),
        ("copies: 2", "copies: -1", r"8: data.train\[0\].copies is -1"),
        (
            "  train: [{name: talk, licence: CC0-1.0, copies: 2}]\n",
            "  train:\n    - {name: talk, licence: X}\n    - {name: b, licence: X, copies: 0}\n",
            r"10: data.train\[1\].copies is 0",
        ),
        (
            "  dev: [held-out]\n",
            "  dev:\n    - held-out\n    - held-out\n",
            r"11: data.dev\[1\] is 'held-out', which is named before it",
        ),
        ("source_language: en", "source_language: e!n", "6: data.source_language is 'e!n'"),
        (
            "target_language: zh",
            "target_language: zh\n  target_tag: z",
            "8: data.target_tag is 'z': 'z' is not a well-formed language tag",
        ),
        (
            "target_language: zh",
            "target_language: tlh\n  filters: {min_script_share: 0.1}",
            "8: data.filters.min_script_share: the script of 'tlh' is not known",
        ),
        (
            "[held-out]",
            "[held-out]\n  max_length: 65537",
            "10: data.max_length is 65537; .* from 2",
        ),
        (
            "[held-out]",
            "[held-out]\n  report: [test/a, b/test/a, c]",
            "10: data.report has 'c'; it must be split/corpus or folder/split/corpus",
        ),
        (
            "[held-out]",
            "[held-out]\n  temperature: 5",
            "10: data.temperature is 5.0; it must be 1 where there is one direction",
        ),
        (
            "[held-out]",
            "[held-out]\n  regularisation:\n    alpha: 0.2\n    nbest_size: 16",
            "12: data.regularisation.nbest_size is 16; it must be -1 where vocabulary.kind is",
        ),
        ("  folder: en-zh\n", "  folder: [en-zh\n", "6: not YAML: expected"),
        ("  folder: en-zh\n", "  folder: 2026-13-01\n", "5: not YAML: month must be"),
        ("name: tiny\n", "name: 2026-13-01\n", "2: not YAML: month must be in 1..12$"),
        ("max_updates: 10", f"max_updates: {'9' * 5000}", "10: not YAML: Exceeds the limit .*5000"),
        ("name: tiny\n", "~: tiny\n", " the key ~ is no text: line 2; quote it"),
        ("  folder: en-zh\n", "  3: en-zh\n", " data: the key 3 is no text: line 5; quote it"),
        ("licence: CC0-1.0, copies", "licence: '', copies", "8: data.train.0..licence is ''; it"),
        (
            "max_updates: 10",
            "max_updates: 10, update_freq: 100001",
            "10: run.update_freq is 100001",
        ),
        ("name: tiny\n", "name: ti\x07ny\n", "2: not YAML: U.0007 is not allowed"),
        ("name: tiny\n", "name: &a [*a]\n", " name.0. contains itself: line 2"),
        ("  folder: en-zh\n", "", "4: data.folder is missing"),
        ("licence: CC0-1.0, copies", "copies", r"8: data.train\[0\].licence is missing"),
        ("max_updates: 10", "max_updates: ten", "10: run.max_updates is 'ten'"),
        ("name: tiny\n", "name: tiny\nname: small\n", " name is written twice, on lines 2 and 3"),
        ("name: tiny\n", "", " name is missing"),
    ],
)
def test_the_line_of_a_wrong_key_is_named(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert old in MINIMAL
    with pytest.raises(ConfigError, match=f"tiny\\.yaml:{place}"):
        read(tmp_path, MINIMAL.replace(old, new))


def test_aliases_of_aliases_are_too_many_keys(tmp_path: Path) -> None:
    lines = ["a0: &a0 [0, 1, 2, 3, 4, 5, 6, 7, 8]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(ConfigError, match=r"tiny\.yaml: there are more than 100000 keys and list"):
        read(tmp_path, "\n".join(lines))


def test_a_missing_file_and_broken_yaml_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: No such file"):
        read_experiment(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"tiny\.yaml:1: not YAML: expected [^\n]*$"):
        read(tmp_path, "name: [unclosed")
    (tmp_path / "tiny.yaml").write_bytes(b"name: tiny\nlicence: \xff\n")
    with pytest.raises(ConfigError, match=r"tiny\.yaml:2: not YAML: 'utf-8' codec"):
        read_experiment(tmp_path / "tiny.yaml")


def test_an_item_of_a_direction_of_several_is_named_by_its_numbers(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"tiny\.yaml:12: data\.pairs\[1\]\.train\[0\]\.copies is 0"
    ):
        read(tmp_path, SEVERAL % ("copies: 0", "[held-out]"))
    with pytest.raises(ConfigError, match=r"tiny\.yaml:13: data\.pairs\[1\]\.dev names no corpus"):
        read(tmp_path, SEVERAL % ("copies: 1", "[]"))


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("network", "d_model: 15", "network.d_model is 15; it must be a multiple of num_heads"),
        ("network", "d_model: 0", "network.d_model is 0; it must be at least 1"),
        ("network", "num_heads: 0", "network.num_heads is 0; it must be at least 1"),
        ("network", "dropout: 1.5", r"network.dropout is 1.5; it must be in \[0, 1\)"),
        ("network", "dropout: .nan", r"network.dropout is nan; it must be in \[0, 1\)"),
        ("network", "position: foo", "network.position is 'foo'; it must be 'sinusoidal-"),
        ("network", "norm: foo", "network.norm is 'foo'; it must be 'layernorm' or 'rmsnorm'"),
        ("network", "decoder_d_ff: 0", "network.decoder_d_ff is 0; it must be at least 1"),
        (
            "network",
            "{decoder_cell: ssru, position: rope}",
            "network.position is 'rope'; it acts inside self-attention, and decoder_cell is 'ssru'",
        ),
        ("network", "activation: foo", "network.activation is 'foo'; it must be 'relu', "),
        (
            "vocabulary",
            "size: 1000000000000",
            "vocabulary.size is 1000000000000; it must be from 8",
        ),
        ("vocabulary", 'user_symbols: ["</s>"]', "vocabulary.user_symbols has '</s>'; text must"),
        ("vocabulary", 'user_symbols: ["<0x41>"]', "vocabulary.user_symbols has '<0x41>'"),
        ("vocabulary", 'denormalisation: {"": x}', "vocabulary.denormalisation has '' as a key"),
        ("optimiser", "epsilon: .nan", "optimiser.epsilon is nan; it must be above 0, and finite"),
        ("optimiser", f"epsilon: 1{'0' * 400}", "optimiser.epsilon is a number of 1329 bits"),
        ("run", "seed: -1", "run.seed is -1; it must be from 0 to"),
        ("run", f"seed: 1{'0' * 22}", "run.seed is a number of 74 bits; it must have at most 63"),
        ("run", "max_minutes: .nan", "run.max_minutes is nan; it must be at least 0, and finite"),
        ("run", "save_every_minutes: .nan", "run.save_every_minutes is nan; it must be at least"),
        ("run", "average_counts: [-3, 0]", "run.average_counts has -3; counts are at least 1"),
        (
            "run",
            "average_counts: [3, 6, 11]",
            "run.average_counts has 11; no more snapshots are kept than run.num_snapshots, 10",
        ),
        ("run", "dev_beam_size: 129", "run.dev_beam_size is 129; it must be from 1 to 128"),
        ("run", "final_beam_size: 129", "run.final_beam_size is 129; it must be from 1 to 128"),
    ],
)
def test_what_a_run_would_stumble_over_is_refused_when_it_is_read(
    tmp_path: Path, section: str, values: str, message: str
) -> None:
    text = MINIMAL.replace("run: {max_updates: 10}", "run:\n  max_updates: 10")
    line, header = (12, "") if section == "run" else (13, f"{section}:\n")
    with pytest.raises(ConfigError, match=rf"tiny\.yaml:{line}: {message}"):
        read(tmp_path, f"{text}{header}  {values}\n")


def test_default_counts_of_averages_may_be_more_than_the_snapshots_kept(tmp_path: Path) -> None:
    text = MINIMAL.replace("{max_updates: 10}", "{max_updates: 10, num_snapshots: 4%s}")
    assert read(tmp_path, text % "").run.average_counts == (5, 10)
    assert read(tmp_path, text % ", average_counts: [4]").run.average_counts == (4,)
    with pytest.raises(ConfigError, match=r"average_counts has 5; .* run\.num_snapshots, 4"):
        read(tmp_path, text % ", average_counts: [3, 5]")


def test_a_learned_table_of_positions_holds_the_longest_sentence(tmp_path: Path) -> None:
    learned = MINIMAL + "network: {position: learned}\n"
    assert read(tmp_path, learned).network.position == "learned"
    with pytest.raises(ConfigError, match=r"tiny\.yaml:10: data\.max_length is 1024; .* below"):
        read(tmp_path, learned.replace("[held-out]", "[held-out]\n  max_length: 1024"))


def test_what_only_some_kinds_of_vocabulary_draw_from_is_fine_with_those(tmp_path: Path) -> None:
    text = MINIMAL.replace("[held-out]", "[held-out]\n  regularisation: {nbest_size: %s}")
    assert read(tmp_path, text % 16 + "vocabulary: {kind: unigram}\n").data.regularisation
    assert read(tmp_path, text % -1).data.regularisation


def test_no_text_may_spell_the_tag_of_a_direction(tmp_path: Path) -> None:
    symbols = 'vocabulary:\n  user_symbols: ["<ph>", ">>zh<<"]\n'
    assert read(tmp_path, MINIMAL + symbols).vocabulary.user_symbols == ("<ph>", ">>zh<<")
    text = SEVERAL % ("copies: 1", "[held-out]") + symbols
    message = r"tiny\.yaml:16: vocabulary\.user_symbols has '>>zh<<', the tag of a direction of"
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize("position", get_args(PositionKind))
@pytest.mark.parametrize("norm", get_args(NormKind))
@pytest.mark.parametrize("activation", get_args(Activation))
def test_every_kind_of_position_norm_and_activation_can_be_chosen(
    tmp_path: Path, position: PositionKind, norm: NormKind, activation: Activation
) -> None:
    chosen = f"network: {{position: {position}, norm: {norm}, activation: {activation}}}\n"
    network = read(tmp_path, MINIMAL + chosen).network
    built = network.build(source_size=8, target_size=8, is_joint=True)
    assert (built.position, built.norm, built.activation) == (position, norm, activation)


def test_rotary_positions_need_heads_of_an_even_width(tmp_path: Path) -> None:
    odd = MINIMAL + "network: {position: rope, d_model: 6, num_heads: 2}\n"
    with pytest.raises(ConfigError, match=r"tiny\.yaml:11: network\.d_k is 3; rotary positions"):
        read(tmp_path, odd)


def test_beams_are_accepted_that_the_translator_has_rows_for() -> None:
    assert inspect.signature(Translator).parameters["max_rows"].default == MAX_BEAM_SIZE


def test_a_joint_vocabulary_shares_one_table(tmp_path: Path) -> None:
    network = read(tmp_path, MINIMAL).network
    joint = network.build(source_size=50, target_size=50, is_joint=True)
    apart = network.build(source_size=50, target_size=60, is_joint=False)
    assert joint.share_embeddings
    assert joint.output_size == 50
    assert not apart.share_embeddings
    assert apart.output_size == 60
