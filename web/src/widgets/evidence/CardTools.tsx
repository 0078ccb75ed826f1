/** What can be done with a finding: copy it or its rewrite, and look at the lines that it speaks of. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { copyText } from "../table/copy";
import type { FindingEntry, SourceLines } from "./Evidence";

interface Props {
  readonly finding: FindingEntry;
}

export function CardTools({ finding }: Props): JSX.Element {
  const { rewrite, markdown, source } = finding;
  return (
    <>
      {source !== null && <Source source={source} />}
      <div class="tools">
        {rewrite !== null && <Copy label={t("Copy the rewrite")} text={rewrite} />}
        <Copy label={t("Copy as Markdown")} text={markdown} />
      </div>
    </>
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

function Source({ source }: { readonly source: SourceLines }): JSX.Element {
  return (
    <pre class="finding-source" tabIndex={0} aria-label={t("Source")}>
      {source.lines.map((line, i) => {
        const number = source.first_line + i;
        return (
          <span key={number} class={number === source.marked ? "marked" : undefined}>
            <i>{number}</i>
            {`${line}\n`}
          </span>
        );
      })}
    </pre>
  );
}
