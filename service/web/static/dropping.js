// Files that come to the page: dropped anywhere, or chosen. Owns the curtain that is seen meanwhile.

/** Call `onFiles(files)` with the files that come together. */
export function receiveFiles({ curtain, opener, input }, onFiles) {
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
    onFiles([...event.dataTransfer.files]);
  });
  opener.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    onFiles([...input.files]);
    input.value = "";
  });
}
