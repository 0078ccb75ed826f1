/** What is selected on this page, kept in the address so that a link leads back to it. */
export { remember } from "../../shell/router";

/** A parameter that is a number; null when it is not. */
export function numberIn(parameters: Readonly<Record<string, string>>, name: string): number | null {
  const value = Number(parameters[name] || NaN);
  return Number.isFinite(value) ? value : null;
}
