// Dialogs: opened by their buttons, closed by theirs, by Escape, or by a click beside them.

/** `{button id: [dialog, before it is shown]}`. */
export function openDialogs(dialogs) {
  for (const [id, [dialog, prepare]] of Object.entries(dialogs)) {
    document.getElementById(id).addEventListener("click", () => {
      prepare();
      dialog.showModal();
    });
    dialog.addEventListener("click", (event) => {
      const isBeside = event.target === dialog && isOutside(event, dialog.getBoundingClientRect());
      if (isBeside || event.target.closest("[data-close]")) dialog.close();
    });
  }
}

const isOutside = (event, box) =>
  event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom;
