/** Starts the interactive part of a page that reads well without it. */
import { startShell } from "./shell/shell";

document.documentElement.classList.add("interactive");
startShell(document);
