// "Try it" of the documentation: sends an example as it stands in its field, and shows the answer.

import { apiKey, useKey } from "./api.js";

const BASE = new URL("../", import.meta.url);
const ADDRESS = "127.0.0.1:8000";

for (const command of document.querySelectorAll(".command")) {
  command.textContent = command.textContent.replace(ADDRESS, BASE.href.replace(/\/$/, ""));
}

const key = document.getElementById("key");
key.value = apiKey();
key.addEventListener("change", () => useKey(key.value));
key.form.addEventListener("submit", (event) => event.preventDefault());
document.querySelector(".key").hidden = false;

for (const form of document.querySelectorAll(".try")) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}

async function send(form) {
  const [said, answer, field] = ["output", ".answer", "textarea"].map((name) => form.querySelector(name));
  const headers = field ? { "content-type": "application/json" } : {};
  if (apiKey()) headers.authorization = `Bearer ${apiKey()}`;
  const url = new URL(form.dataset.path.replace(/^\//, ""), BASE);
  const started = performance.now();
  said.textContent = "…";
  try {
    const reply = await fetch(url, { method: form.dataset.method, headers, body: field?.value, cache: "no-store" });
    const text = await reply.text();
    said.textContent = `${reply.status}, ${Math.round(performance.now() - started)} ms`;
    answer.textContent = indented(text);
  } catch {
    said.textContent = "The server cannot be reached.";
    answer.textContent = "";
  }
  answer.hidden = !answer.textContent;
}

/** JSON over several lines; anything else as it is. */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
