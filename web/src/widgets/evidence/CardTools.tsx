/** What can be done with a finding: copy it or its rewrite. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { copyText } from "../table/copy";
import type { FindingEntry } from "./Evidence";

interface Props {
  readonly finding: FindingEntry;
}

export function CardTools({ finding }: Props): JSX.Element {
  const { rewrite, markdown } = finding;
  return (
    <div class="tools">
      {rewrite !== null && <Copy label={t("Copy the rewrite")} text={rewrite} />}
      <Copy label={t("Copy as Markdown")} text={markdown} />
    </div>
  );
}

function Copy({ label, text }: { readonly label: string; readonly text: string }): JSX.Element {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    setCopied(await copyText(text));
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" onClick={() => void copy()}>
      <span aria-live="polite">{copied ? t("Copied") : label}</span>
    </button>
  );
}
