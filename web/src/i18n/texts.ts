/** The texts of the interface in English. The build keeps them out of the script: there a text is its place in here. */
export const TEXTS: readonly string[] = JSON.parse(document.querySelector('script[data-block="language/en"]')?.textContent ?? "[]");
