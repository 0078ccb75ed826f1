/**
 * Where the reader is: a page of the report and what is selected there, in the address's fragment.
 *
 * `#/timeline?from=10&to=20` opens a page; `#environment` an element of the static part, as in any document.
 */

/** A page and its parameters. */
export interface Route {
  readonly page: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The route that a fragment names; null for an ordinary anchor. */
export function parseRoute(fragment: string): Route | null {
  if (!fragment.startsWith("#/")) return null;
  const [page = "", query = ""] = fragment.slice(2).split("?", 2);
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
  const query = new URLSearchParams(Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1))).toString();
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
