/** What is selected on this page, kept in the address so that a link leads back to it. */
import { note, parseRoute } from "../../shell/router";

const DELAY_MS = 300;
let waiting: ReturnType<typeof setTimeout> | undefined;
let changes: Record<string, string | null> = {};

/**
 * Note parameters of a page in the address; null takes one out. Several in a row are noted together a moment later,
 * because browsers refuse an address that changes with every movement.
 */
export function remember(page: string, changed: Readonly<Record<string, string | null>>): void {
  changes = { ...changes, ...changed };
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const now = parseRoute(location.hash);
    const merged = { ...(now?.page === page ? now.parameters : {}), ...changes };
    changes = {};
    if (now !== null && now.page !== page) return; // the reader has gone on
    note(page, Object.fromEntries(Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== null)));
  }, DELAY_MS);
}

/** A parameter that is a number; null when it is not. */
export function numberIn(parameters: Readonly<Record<string, string>>, name: string): number | null {
  const value = Number(parameters[name] || NaN);
  return Number.isFinite(value) ? value : null;
}
