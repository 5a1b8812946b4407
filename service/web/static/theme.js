// The chosen colours, before anything is drawn. Owns `data-theme` at the start; a change of it is
// preferences.js. Not a module, because modules run after the first paint.
(() => {
  try {
    const theme = JSON.parse(localStorage.getItem("dragoman.theme"));
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage the colours are those of the system.
  }
})();
