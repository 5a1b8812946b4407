// Files that come to the page: dropped anywhere, or chosen. Owns the curtain that is seen meanwhile.

/** Call `onFile(file)` for every file that comes. */
export function receiveFiles({ curtain, opener, input }, onFile) {
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const show = (change) => {
    depth = Math.max(0, depth + change);
    curtain.hidden = depth === 0;
  };
  document.addEventListener("dragenter", (event) => hasFiles(event) && show(1));
  document.addEventListener("dragleave", (event) => hasFiles(event) && show(-1));
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    show(-depth);
    for (const file of event.dataTransfer.files) onFile(file);
  });
  opener.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    for (const file of input.files) onFile(file);
    input.value = "";
  });
}
