/**
 * Where the reader is: a page of the report and what is selected there, in the address's fragment.
 *
 * `#/timeline?from=10&to=20` opens a page; `#environment` an element of the static part, as in any document.
 */

/** A page and its parameters. */
export interface Route {
  readonly page: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** The page that was shown before, which may be the same one. */
  readonly from?: string | undefined;
}

/** The route that a fragment names; null for an ordinary anchor. */
export function parseRoute(fragment: string): Route | null {
  if (!fragment.startsWith("#/")) return null;
  const [, page = "", query = ""] = /^#\/([^?]*)\??(.*)$/s.exec(fragment) ?? [];
  return { page: decoded(page), parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** A part of a fragment as it was before it was encoded; what is damaged stays as it is. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The fragment of a route; parameters in alphabetical order, so that equal routes are equal addresses. */
export function formatRoute({ page, parameters }: Route): string {
  const pairs = new URLSearchParams(Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1)));
  const query = pairs.toString().replace(/%(?:2C|2F|3A|3B)/g, decodeURIComponent); // these may stand there, and read better
  return `#/${encodeURIComponent(page)}${query === "" ? "" : `?${query}`}`;
}

/** Go to a page, as a link does: the reader can come back. */
export function go(page: string, parameters: Readonly<Record<string, string>> = {}): void {
  location.hash = formatRoute({ page, parameters });
}

/** Note what is selected in the address without a new entry in the history, and without moving. */
export function note(page: string, parameters: Readonly<Record<string, string>>): void {
  history.replaceState(null, "", formatRoute({ page, parameters }));
}

/** What is to be noted: a text, or null to take a parameter out. */
export type Changes = Readonly<Record<string, string | null>>;

/** Note some of the parameters of a page and leave its others; nothing when the reader is on another page. */
export function noteSome(page: string, changes: Changes): void {
  const here = parseRoute(location.hash);
  if (document.body.dataset["shown"] !== page || (here !== null && here.page !== page)) return;
  const all = Object.entries({ ...here?.parameters, ...changes });
  note(page, Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== null)));
}

const DELAY_MS = 300;
let waiting: ReturnType<typeof setTimeout> | undefined;
let held: { readonly page: string; readonly changes: Changes } = { page: "", changes: {} };

/**
 * The same a moment later, several in a row together: browsers refuse an address that changes with every movement.
 * What was clicked stands there `atOnce`, with all that still waited.
 */
export function remember(page: string, changes: Changes, atOnce = false): void {
  held = { page, changes: held.page === page ? { ...held.changes, ...changes } : changes };
  clearTimeout(waiting);
  if (atOnce) writeHeld();
  else waiting = setTimeout(writeHeld, DELAY_MS);
}

function writeHeld(): void {
  noteSome(held.page, held.changes);
  held = { page: "", changes: {} };
}
