/**
 * What happened to a request: a sentence, whose fault it is, what was tried, and what to do.
 */
import { duration } from "../../parts/format.ts"
import { Sign } from "../../parts/Icon.tsx"
import { Breaking } from "../../parts/Name.tsx"
import { helpAddress } from "../../state/help.ts"
import { clockAtom } from "../../state/live.ts"
import { useAtom } from "../../state/registry.ts"
import type { RequestRecord } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { judge, type Verdict as Judgement } from "./verdict.ts"

/** How long ago a time is, counted up every second. */
export const Since = ({ at }: { readonly at: number }) => <>{duration(useAtom(clockAtom) - at)}</>

const signs: Readonly<Record<Judgement["tone"], string>> = { "": "…", good: "✓", warn: "!", bad: "✕" }

/** Errors that a setting or an entry of the configuration answers, with where it is changed. */
const repairs: Readonly<Record<string, "models" | "routes" | "upstreams">> = {
  embeddings_unavailable: "upstreams",
  model_not_found: "routes",
  model_not_priced: "models"
}

/** Where the one who has to act looks next. */
const Next = ({ fault, record: { account, error, key, target } }: {
  readonly fault: Judgement["fault"]
  readonly record: RequestRecord
}) => {
  const { common, inspector: t } = useTexts()
  const repair = repairs[error ?? ""]
  if (repair !== undefined) return <a href={linkTo(repair)}>{common.pages[repair]}</a>
  switch (fault) {
    case "account":
      return (
        <a href={linkTo("accounts", account || undefined)}>
          {account === "" ? common.pages.accounts : t.openAccount}
        </a>
      )
    case "upstream":
      return target === undefined
        ? <a href={linkTo("accounts", account || undefined)}>{common.pages.accounts}</a>
        : <a href={linkTo("upstreams", target.split("/")[0])}>{common.pages.upstreams}</a>
    case "caller":
      return key === "direct" || key === "none" ? null : <a href={linkTo("keys", key)}>{t.openKey}</a>
    case "gateway":
      return <a href={linkTo("overview")}>{common.pages.overview}</a>
    case null:
      return null
  }
}

/** The targets of the route that did not get the request, with why. */
const Excluded = ({ record: { excluded } }: { readonly record: RequestRecord }) => {
  const t = useTexts().inspector
  if (excluded.length === 0) return null
  return (
    <p class="hint">
      {t.excluded(excluded.map(({ reason, target }) => `${target} (${t.exclusions(reason)})`).join(", "))}
    </p>
  )
}

/** Stands in a sentence for what may break there. */
const hole = "\u0001"

const Sentence = ({ kind, record }: { readonly kind: Judgement["kind"]; readonly record: RequestRecord }) => {
  const t = useTexts().inspector
  const { account, duration_ms, error_message, first_event_ms, started_at } = record
  if (kind === "failed") return <>{error_message ?? t.happened.failed}</>
  if (kind === "queued" || kind === "upstream" || kind === "streaming") {
    return (
      <>
        {t.running[kind]} <Since at={kind === "streaming" ? started_at + (first_event_ms ?? 0) : started_at} />
      </>
    )
  }
  const [before, after] = t.happened[kind](duration(duration_ms ?? 0), account === "" ? "" : hole).split(hole)
  return (
    <>
      {before}
      {after !== undefined && <Breaking text={account} />}
      {after}
    </>
  )
}

export const Verdict = ({ record }: { readonly record: RequestRecord }) => {
  const t = useTexts().inspector
  const { advice, fault, kind, tone } = judge(record)
  const todo = advice.map(t.advice).find((text) => text !== undefined)
  if (kind === "answered" && record.excluded.length === 0) {
    return (
      <section class="verdict" aria-label={t.whatHappened}>
        <p class="sentence">
          <span class={`badge ${tone}`}>
            <Sign of={signs[tone]} />
          </span>
          <span>
            <Sentence kind={kind} record={record} />{" "}
            {record.status !== null && <span class="hint nowrap">{t.statusIs(record.status)}</span>}
          </span>
        </p>
      </section>
    )
  }
  return (
    <section class={`card verdict ${tone}`} aria-label={t.whatHappened}>
      <p class="sentence">
        <span class={`badge ${tone}`}>
          <Sign of={signs[tone]} />
        </span>
        <strong>
          <Sentence kind={kind} record={record} />
        </strong>
      </p>
      <p class="summary">
        {record.outcome !== "open" && <span>{t.outcomes(record.outcome)}</span>}
        {record.status !== null && <span>{t.statusIs(record.status)}</span>}
        {record.error !== null && (
          <a class="refused" href={helpAddress("reference/errors", record.error)} target="_blank" rel="noreferrer">
            <code>{record.error}</code>
          </a>
        )}
        {fault !== null && <span>{t.atFault(t.faults[fault])}</span>}
      </p>
      <Excluded record={record} />
      {todo !== undefined && (
        <p class="todo">
          {todo} {kind === "failed" && <Next fault={fault} record={record} />}
        </p>
      )}
    </section>
  )
}
