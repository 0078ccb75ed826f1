/**
 * Runs in the head, before anything is painted: the theme that the reader chose, and no flash of the whole document
 * before it is divided into pages. The rest of the script stands at the end of the page.
 */
import { applyTheme, chosenTheme } from "./theme";

const root = document.documentElement;
applyTheme(chosenTheme());
root.classList.add("starting");
if (location.hash.length > 1) root.classList.add("elsewhere-first");
// Should the rest fail to start, the document stands there as it would without any script.
addEventListener("load", () => root.classList.remove("starting", "elsewhere-first"));
