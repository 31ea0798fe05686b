/**
 * Two requests side by side: their facts and times, their bodies line by line, their replies word by word, and their bills.
 */
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import { RequestBadge } from "../../parts/Badge.tsx"
import { duration, exactMoney, exactTime, number } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { LoadFailure, Loading } from "../../parts/Loaded.tsx"
import { Breaking } from "../../parts/Name.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { useCurrency } from "../../state/currency.ts"
import { parsed } from "../../state/json.ts"
import type { RequestRecord } from "../../state/requests.ts"
import { go, linkTo, useQuery } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import type { AllTexts } from "../../texts/later.ts"
import { asText, turnsOf } from "./conversationText.ts"
import { differenceOf, inOrderOf, linesOf } from "./diff.ts"
import { shownCharacters } from "./readable.ts"
import { useRecord } from "./useRecord.ts"

/** A fact of both requests. */
interface Fact {
  readonly name: string
  readonly shown: (record: RequestRecord) => ComponentChildren
  /** What is compared; of times and counts a number. */
  readonly value: (record: RequestRecord) => string | number | null | undefined
}

const text = (name: string, value: (record: RequestRecord) => string | null | undefined): Fact => ({
  name,
  value,
  shown: (record) => value(record) ?? "–"
})

const count = (
  name: string,
  value: (record: RequestRecord) => number | null | undefined,
  say: (value: number) => string = number
): Fact => ({
  name,
  value,
  shown: (record) => {
    const known = value(record)
    return known === null || known === undefined ? "–" : say(known)
  }
})

const factsOf = (
  { inspector: t, promptCache, requests }: AllTexts,
  currency: string | undefined
): ReadonlyArray<Fact> => [
  { name: requests.time, value: ({ started_at }) => started_at, shown: ({ started_at }) => exactTime(started_at) },
  {
    name: requests.outcome,
    value: ({ error, outcome, status }) => `${outcome} ${error} ${status}`,
    shown: (record) => (
      <>
        <RequestBadge item={record} /> {record.status !== null && <span class="hint">{record.status}</span>}
      </>
    )
  },
  text(requests.key, ({ key, key_name }) => key_name ?? requests.keyNames(key)),
  text(t.model, ({ model }) => model),
  text(t.style, ({ stream, style }) => `${requests.styles(style)}, ${stream ? t.streamed : t.whole}`),
  text(t.app, ({ app }) => app),
  text(t.session, ({ session }) => session),
  text(t.target, ({ target }) => target),
  {
    name: t.account,
    value: ({ account }) => account,
    shown: ({ account }) => account === "" ? "–" : <Breaking text={account} />
  },
  count(t.attempts, ({ attempts }) => attempts),
  text(t.end, ({ finish }) => finish),
  count(t.queued, ({ queued_ms }) => queued_ms, duration),
  count(t.firstEvent, ({ first_event_ms }) => first_event_ms, duration),
  count(t.duration, ({ duration_ms }) => duration_ms, duration),
  count(t.promptTokens, ({ usage }) => usage?.prompt_tokens),
  count(promptCache.fromCache, ({ prompt_cache }) => prompt_cache?.read),
  count(t.completionTokens, ({ usage }) => usage?.completion_tokens),
  {
    name: t.cost,
    value: ({ cost }) => cost === null ? null : Number(cost),
    shown: ({ cost }) => cost === null ? "–" : exactMoney(cost, currency)
  }
]

/** How much more or less the second value is, in percent of the first one; nothing where that says nothing. */
const change = (
  first: Fact["value"] extends (record: RequestRecord) => infer Value ? Value : never,
  second: unknown
) => {
  if (typeof first !== "number" || typeof second !== "number" || first === 0 || first === second) return ""
  const share = Math.round(((second - first) / first) * 100)
  return share === 0 ? "" : `${share > 0 ? "+" : "−"}${number(Math.abs(share))} %`
}

/** Two requests: the first one, and the one that it is compared with. */
interface Both {
  readonly first: RequestRecord
  readonly second: RequestRecord
}

const Facts = ({ first, second }: Both) => {
  const texts = useTexts()
  const t = texts.compare
  const currency = useCurrency()
  const facts = factsOf(texts, currency)
  return (
    <Section name={t.facts} class="compared">
      <Table
        name={t.facts}
        columns={[t.fact, first.request_id, second.request_id, ...numbers(t.change)]}
        rows={facts.length}
        empty=""
        compact
      >
        {facts.map(({ name, shown, value }) => {
          const [one, other] = [value(first), value(second)]
          if ([one, other].every((each) => each === null || each === undefined || each === "")) return null
          const differs = one !== other
          return (
            <tr key={name} class={differs ? "differs" : ""}>
              <th scope="row">
                {name}
                {differs && <span class="sr-only">{t.differs}</span>}
              </th>
              <td class="text">{shown(first)}</td>
              <td class="text">{shown(second)}</td>
              <td class="number hint">{name === texts.requests.time ? "" : change(one, other)}</td>
            </tr>
          )
        })}
      </Table>
    </Section>
  )
}

/** The most lines of a comparison that are drawn. */
const mostLines = 1_000

const signs = { same: " ", removed: "−", added: "+" } as const

const Lines = ({ after, before, name }: {
  readonly name: string
  readonly before: string
  readonly after: string
}) => {
  const { compare: t, inspector } = useTexts()
  const lines = useMemo(
    () => before === after ? undefined : linesOf(before.slice(0, shownCharacters), after.slice(0, shownCharacters)),
    [before, after]
  )
  if (before === "" && after === "") return <p class="hint">{t.nothing}</p>
  if (lines === undefined) return <p>{t.same}</p>
  const longest = Math.max(before.length, after.length)
  return (
    <>
      <div class="card body diff" tabIndex={0} role="group" aria-label={name}>
        {lines.slice(0, mostLines).map((line, index) =>
          line.kind === "equal"
            ? <p key={index} class="hint">{t.equal(line.count)}</p>
            : line.kind === "same"
            ? <pre key={index}>{`${signs.same} ${line.text}`}</pre>
            : line.kind === "removed"
            ? <del key={index}>{`${signs.removed} ${line.text}`}</del>
            : <ins key={index}>{`${signs.added} ${line.text}`}</ins>
        )}
      </div>
      {(longest > shownCharacters || lines.length > mostLines) && <p class="hint">{inspector.shownInPart(longest)}</p>}
    </>
  )
}

/** Both bodies as lines: JSON with its members in the same order. */
const bodiesOf = ({ first, second }: Both): readonly [before: string, after: string] => {
  const texts = [first.request.body, second.request.body] as const
  const [before, after] = texts.map((each) => each.length > shownCharacters ? undefined : parsed(each))
  return before === undefined || after === undefined
    ? texts
    : [JSON.stringify(before, null, 2), JSON.stringify(inOrderOf(after, before), null, 2)]
}

const Bodies = (both: Both) => {
  const t = useTexts().compare
  const [before, after] = useMemo(() => bodiesOf(both), [both.first, both.second])
  return (
    <Section name={t.body}>
      {both.first.bodies_kept && both.second.bodies_kept
        ? <Lines name={t.body} before={before} after={after} />
        : <p class="hint">{t.notKept}</p>}
    </Section>
  )
}

const replyOf = (record: RequestRecord): string => asText(turnsOf({ ...record, conversation: [] }))

const Replies = ({ first, second }: Both) => {
  const { compare: t, inspector } = useTexts()
  const [before, after] = useMemo(() => [first, second].map(replyOf), [first, second]) as [string, string]
  const stretches = useMemo(
    () => differenceOf(before.slice(0, shownCharacters), after.slice(0, shownCharacters)),
    [before, after]
  )
  const longest = Math.max(before.length, after.length)
  return (
    <Section name={t.reply}>
      {before === "" && after === ""
        ? <p class="hint">{t.nothing}</p>
        : before === after
        ? <p>{t.same}</p>
        : (
          <div class="card body" tabIndex={0} role="group" aria-label={t.reply}>
            <p class="said">
              {stretches.map(({ kind, text: part }, index) =>
                kind === "same"
                  ? <span key={index}>{part}</span>
                  : kind === "removed"
                  ? <del key={index}>{part}</del>
                  : <ins key={index}>{part}</ins>
              )}
            </p>
          </div>
        )}
      {longest > shownCharacters && <p class="hint">{inspector.shownInPart(longest)}</p>}
    </Section>
  )
}

const Bills = ({ first, second }: Both) => {
  const { compare: t, inspector } = useTexts()
  const bills = [first.bill?.lines ?? [], second.bill?.lines ?? []] as const
  const units = [...new Set(bills.flatMap((lines) => lines.map(({ unit }) => unit)))]
  if (units.length === 0) return null
  const cells = (lines: (typeof bills)[number], unit: string) => {
    const line = lines.find((each) => each.unit === unit)
    return [line === undefined ? "–" : number(line.amount), line?.cost ?? "–"]
  }
  const names = [first.request_id, second.request_id]
  return (
    <Section name={inspector.bill} class="compared">
      <Table
        name={inspector.bill}
        columns={[
          inspector.unit,
          ...numbers(...names.flatMap((name) => [t.amountOf(name), t.costOf(name)]))
        ]}
        rows={units.length}
        empty=""
        compact
      >
        {units.map((unit) => {
          const row = bills.flatMap((lines) => cells(lines, unit))
          return (
            <tr key={unit} class={row[0] === row[2] && row[1] === row[3] ? "" : "differs"}>
              <th scope="row" class="text">
                <code>{unit}</code>
              </th>
              {row.map((cell, index) => <td key={index} class="number">{cell}</td>)}
            </tr>
          )
        })}
      </Table>
    </Section>
  )
}

export const Compare = ({ of = "" }: { readonly of: string | undefined }) => {
  const { compare: t, inspector } = useTexts()
  const other = useQuery()["with"] ?? ""
  const sides = [useRecord(of), useRecord(other)] as const
  const [first, second] = sides.map(({ record }) => record)
  const gone = sides.findIndex((side) => side.gone && side.record === undefined)
  return (
    <>
      <Heading name={t.title}>
        <button type="button" onClick={() => go("requests", other, { with: of })}>{t.swap}</button>
      </Heading>
      <p class="summary">
        {([[of, first], [other, second]] as const).map(([id, record], index) => (
          <a key={index} href={linkTo("requests", id)}>{inspector.title(record?.request_id ?? id)}</a>
        ))}
      </p>
      {sides.map(({ failure, retry }, index) =>
        failure === undefined ? null : <LoadFailure key={index} text={failure} onRetry={retry} />
      )}
      {gone !== -1 && <p class="notice">{`${[of, other][gone]}: ${inspector.gone}`}</p>}
      {first === undefined || second === undefined ? gone === -1 && <Loading /> : (
        <>
          <Facts first={first} second={second} />
          <p class="hint">{t.signs(first.request_id, second.request_id)}</p>
          <Bodies first={first} second={second} />
          <Replies first={first} second={second} />
          <Bills first={first} second={second} />
        </>
      )}
    </>
  )
}
