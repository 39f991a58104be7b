"use strict";
// Keeps the line on how far the run is current. The page is whole without this.
(() => {
  const EVERY = 2000, PATIENCE = 3;
  const line = document.getElementById("course");
  let silent = 0;
  const again = async () => {
    try {
      const answer = await fetch("course", { cache: "no-store", signal: AbortSignal.timeout(30000) });
      if (!answer.ok) throw new Error(answer.status);
      line.textContent = await answer.text();
      silent = 0;
    } catch {
      silent += 1;
    }
    if (silent < PATIENCE) setTimeout(again, EVERY);
    else line.textContent = line.dataset.ended;
  };
  // A page that was saved has no server to ask.
  if (location.protocol !== "file:") setTimeout(again, EVERY);
})();
