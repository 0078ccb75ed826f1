/** A drawing with its title, what can be done with it, how to read it and what would change the conclusion. */
import type { ComponentChildren, JSX } from "preact";
import { language, t } from "../i18n/language";
import { inLanguage } from "../i18n/static";

interface Props {
  readonly title: string;
  /** How to read it; English, translated here. */
  readonly how: string;
  /** What would change the conclusion; English, translated here. */
  readonly change?: string;
  /** Buttons and fields above the drawing. */
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Figure({ title, how, change, tools, children }: Props): JSX.Element {
  return (
    <figure class="explored" aria-label={t(title)}>
      <figcaption>
        <strong>{t(title)}</strong>
        <span class="tools">{tools}</span>
      </figcaption>
      {children}
      <div class="reading">
        <p>
          <b>{t("How to read this.")}</b> {inLanguage(how, language())}
        </p>
        {change !== undefined && (
          <p>
            <b>{t("What would change this conclusion.")}</b> {inLanguage(change, language())}
          </p>
        )}
      </div>
    </figure>
  );
}
