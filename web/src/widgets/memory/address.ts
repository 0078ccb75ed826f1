/** What is selected on this page, as the address has it. */

/** A parameter that is a number; null when it is not. */
export function numberIn(parameters: Readonly<Record<string, string>>, name: string): number | null {
  const value = Number(parameters[name] || NaN);
  return Number.isFinite(value) ? value : null;
}
