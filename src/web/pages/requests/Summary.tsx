/**
 * The facts of a request: who asked what of whom, how much it took, and when.
 */
import type { ComponentChildren } from "preact"
import { CopyButton } from "../../parts/Copy.tsx"
import { duration, exactTime, number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Breaking } from "../../parts/Name.tsx"
import { Money } from "../../parts/Values.tsx"
import type { RequestRecord } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { Since } from "./Verdict.tsx"

type Fact = readonly [name: string, value: ComponentChildren]

const Copied = ({ children, name, text }: {
  readonly name: string
  readonly text: string
  readonly children: ComponentChildren
}) => (
  <span class="copied">
    <span>{children}</span>
    <CopyButton name={name} text={text} />
  </span>
)

/** Values of `key` that stand for callers without a key of the configuration. */
const isKey = (key: string): boolean => key !== "direct" && key !== "none" && key !== "embedded"

const Key = ({ record: { key, key_name } }: { readonly record: RequestRecord }) => {
  const t = useTexts().inspector
  if (!isKey(key)) return <>{t.keyless(key)}</>
  return (
    <Copied name={t.key} text={key}>
      <a href={linkTo("keys", key)}>{key_name ?? t.nameless}</a> <code class="hint">{key}</code>
    </Copied>
  )
}

const Model = ({ record: { model, native_model } }: { readonly record: RequestRecord }) => (
  <>
    {[...new Set([model, native_model])].filter((name) => name !== null).map((name, i) => (
      <span key={name}>
        {i > 0 && " → "}
        <a href={name === model ? linkTo("models", name) : linkTo("requests", undefined, { model: `"${name}"` })}>
          {name}
        </a>
      </span>
    ))}
  </>
)

/** Tokens a second from the first event to the end; `undefined` for a reply that came immediately. */
const rateOf = ({ duration_ms, first_event_ms, stream, usage }: RequestRecord): number | undefined => {
  if (usage === null || first_event_ms === null || duration_ms === null || !stream) return undefined
  const seconds = (duration_ms - first_event_ms) / 1000
  return seconds < 0.05 || usage.completion_tokens < 2 ? undefined : usage.completion_tokens / seconds
}

const useTokens = (record: RequestRecord): ReadonlyArray<Fact> => {
  const t = useTexts().inspector
  const { cost, usage } = record
  if (usage === null) return []
  const rate = rateOf(record)
  return [
    [t.promptTokens, number(usage.prompt_tokens)],
    [
      t.completionTokens,
      `${number(usage.completion_tokens)}${
        usage.reasoning_tokens === 0 ? "" : `, ${t.reasoningTokens(number(usage.reasoning_tokens))}`
      }`
    ],
    ...rate === undefined ? [] : [[t.rate, t.perSecond(number(Math.round(rate * 10) / 10))] as const],
    ...cost === null ? [] : [[t.cost, <Money amount={cost} currency={undefined} />] as const]
  ]
}

const useTimes = (record: RequestRecord): ReadonlyArray<Fact> => {
  const t = useTexts().inspector
  const { attempts, duration_ms, first_event_ms, outcome, queued_ms, started_at, state } = record
  const isOpen = outcome === "open"
  const counted = <Since at={started_at} />
  return [
    [t.started, exactTime(started_at)],
    ...isOpen && state === "queued"
      ? [[t.queued, counted] as const]
      : queued_ms === null || (attempts === 0 && queued_ms < 1)
      ? []
      : [[t.queued, duration(queued_ms)] as const],
    ...first_event_ms === null
      ? isOpen && state === "upstream" ? [[t.firstEvent, counted] as const] : []
      : [[t.firstEvent, duration(first_event_ms)] as const],
    ...isOpen
      ? [[t.duration, counted] as const]
      : duration_ms === null
      ? []
      : [[t.duration, duration(duration_ms)] as const]
  ]
}

export const Summary = ({ record }: { readonly record: RequestRecord }) => {
  const { inspector: t, requests } = useTexts()
  const {
    account,
    agent,
    app,
    attempts,
    failovers,
    finish,
    ignored,
    ignored_more,
    node,
    parent,
    request_id,
    session,
    stream,
    style,
    target
  } = record
  const facts: ReadonlyArray<Fact> = [
    [
      t.id,
      <Copied key="id" name={t.id} text={request_id}>
        <code>{request_id}</code>
      </Copied>
    ],
    [t.key, <Key key="key" record={record} />],
    ...record.model === null ? [] : [[t.model, <Model key="model" record={record} />] as const],
    [t.style, `${requests.styles(style)}, ${stream ? t.streamed : t.whole}`],
    ...app === undefined ? [] : [[t.app, app] as const],
    ...session === undefined ? [] : [
      [
        t.session,
        <Copied key="session" name={t.session} text={session}>
          <a href={linkTo("requests", undefined, { session })}>{session}</a>
        </Copied>
      ] as const
    ],
    ...agent === undefined ? [] : [[t.agent, parent === undefined ? agent : `${agent} (${parent})`] as const],
    ...account === "" ? [] : [
      [
        t.account,
        <Copied key="account" name={t.account} text={account}>
          <a href={linkTo("accounts", account)}>
            <Breaking text={account} />
          </a>
        </Copied>
      ] as const
    ],
    ...target === undefined
      ? []
      : [[t.target, <a key="target" href={linkTo("upstreams", target.split("/")[0])}>{target}</a>] as const],
    ...useTimes(record),
    ...useTokens(record),
    ...attempts > 1 ? [[t.attempts, t.attemptsOf(attempts, failovers)] as const] : [],
    ...finish === null ? [] : [[t.end, finish] as const],
    ...node === undefined ? [] : [[t.node, node] as const],
    ...ignored.length + ignored_more === 0
      ? []
      : [[t.ignored, [...ignored, ...ignored_more === 0 ? [] : [`+${ignored_more}`]].join(", ")] as const]
  ]
  return (
    <Section name={t.summary}>
      <dl class="card facts-grid">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  )
}
