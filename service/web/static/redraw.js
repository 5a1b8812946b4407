// Lists of buttons that are drawn anew. Owns that the focus is not lost with the one that had it.

/** Put other rows into a list; the focus goes to the button that stands where the focused one stood. */
export function redraw(list, rows) {
  const index = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...rows);
  if (index < 0) return;
  const buttons = list.querySelectorAll("button");
  buttons[Math.min(index, buttons.length - 1)]?.focus();
}
