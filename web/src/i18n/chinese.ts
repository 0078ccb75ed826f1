/** English text of the interface → Chinese. Headings, labels and hints of the static part are looked up here too. */
export const CHINESE: Readonly<Record<string, string>> = {
  Overview: "概览",
};
