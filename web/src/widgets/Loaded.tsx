/** Shows a widget's content once its data is decoded, and says so when it cannot be. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Blocks } from "../data/blocks";
import { t } from "../i18n/language";

interface Props<T> {
  readonly blocks: Blocks;
  readonly name: string;
  readonly children: (content: T) => ComponentChildren;
}

export function Loaded<T>({ blocks, name, children }: Props<T>): JSX.Element {
  const [content, setContent] = useState<{ readonly value: T } | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    let wanted = true;
    blocks.read<T>(name).then(
      (value) => wanted && setContent({ value }),
      (error: unknown) => {
        if (!wanted) return;
        setFailure(String(error));
        document.body.classList.add("as-text"); // the chapters that it stands for are there still
      },
    );
    return () => {
      wanted = false;
    };
  }, [blocks, name]);
  if (failure !== null) return <p class="caveat failed">{t("This part cannot be shown: {why}", { why: failure })}</p>;
  if (content === null) return <p class="note" aria-busy="true">{t("Reading…")}</p>;
  return <>{children(content.value)}</>;
}
