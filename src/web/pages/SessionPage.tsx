/**
 * One session: what it took in all, its agents as a tree, and its turns in order, each with the tools that it called, its time and its cost.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useMemo, useState } from "preact/hooks"
import { RequestBadge } from "../parts/Badge.tsx"
import { Chip } from "../parts/Card.tsx"
import { Empty } from "../parts/Empty.tsx"
import { duration, exactTime, number, percent } from "../parts/format.ts"
import { Heading, Section } from "../parts/Heading.tsx"
import { Loaded, LoadFailure, Loading, useReads } from "../parts/Loaded.tsx"
import { type Column, Row, Table } from "../parts/Table.tsx"
import { When } from "../parts/Time.tsx"
import { Count, Money, Took } from "../parts/Values.tsx"
import type { RequestItem } from "../state/client.ts"
import { useCurrency } from "../state/currency.ts"
import { failureText } from "../state/failure.ts"
import { onRequests, useReread } from "../state/live.ts"
import { type Failed, readOf, useRetry } from "../state/reads.ts"
import { useValue } from "../state/registry.ts"
import { listRequests, readRequest } from "../state/requests.ts"
import { choose, linkTo, useQuery } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"
import { exactly } from "./requests/filter.ts"
import { treeOf } from "./usage/tree.ts"

const day = 24 * 3_600_000

/** Days of usage that are looked at, and the most agents. */
const [days, mostAgents] = [30, 1_000]

/** Turns that are read at a time. */
const turnsAtATime = 50

/** How many turns are read in all at most. */
const mostTurns = 1_000

/** The turns of a session, the oldest first, as far as they are read; `all` as far as they may be. Read again while its requests change. */
const useTurns = (session: string, key: string, all: boolean) => {
  const [asked, setAsked] = useState(turnsAtATime)
  const wanted = all ? mostTurns : asked
  const [tries, setTries] = useState(0)
  const [turns, setTurns] = useState<ReadonlyArray<RequestItem>>()
  const [hasMore, setMore] = useState(false)
  const [failure, setFailure] = useState<Failed>()
  useEffect(() => {
    const ending = new AbortController()
    const read = async () => {
      const filter = { session, ...key === "" ? {} : { key: exactly("key", key) } }
      const items: Array<RequestItem> = []
      let cursor: string | undefined
      do {
        const page = await listRequests(
          filter,
          { sort: "started_at", order: "asc" },
          turnsAtATime,
          cursor,
          ending.signal
        )
        items.push(...page.items)
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined && items.length < wanted)
      setTurns(items)
      setMore(cursor !== undefined)
      setFailure(undefined)
    }
    read().catch((reason: unknown) => {
      if (!ending.signal.aborted) setFailure({ text: failureText(reason) })
    })
    return () => ending.abort()
  }, [session, key, wanted, tries])
  useEffect(() =>
    onRequests((items) => {
      if (items.some((item) => item.session === session && item.outcome !== "open")) setTries((count) => count + 1)
    }), [session])
  const retry = () => setTries((count) => count + 1)
  useRetry(failure, retry)
  return {
    turns,
    failure: failure === undefined ? null : <LoadFailure text={failure.text} onRetry={retry} />,
    more: hasMore && wanted < mostTurns ? () => setAsked(wanted + turnsAtATime) : undefined
  }
}

/** The names of the tools that turns called, by the id of the turn: read one after another, of each turn once. */
const useTools = (turns: ReadonlyArray<RequestItem>): ReadonlyMap<string, string> => {
  const [tools, setTools] = useState<ReadonlyMap<string, string>>(new Map())
  const missing = turns.find(({ bodies_kept, calls, id, outcome }) =>
    calls > 0 && bodies_kept && outcome !== "open" && !tools.has(id)
  )?.id
  useEffect(() => {
    if (missing === undefined) return
    const ending = new AbortController()
    const add = (names: string) => setTools((known) => new Map(known).set(missing, names))
    readRequest(missing, ending.signal).then(
      (record) => {
        const counts = Map.groupBy(record?.tool_calls ?? [], ({ name }) => name)
        add([...counts].map(([name, all]) => all.length === 1 ? name : `${name} ×${all.length}`).join(", "))
      },
      () => {
        if (!ending.signal.aborted) add("")
      }
    )
    return () => ending.abort()
  }, [missing])
  return tools
}

const Turns = ({ session, sessionKey }: { readonly session: string; readonly sessionKey: string }) => {
  const { requests, sessions: t, usage } = useTexts()
  const currency = useCurrency()
  const { agent: chosen = "" } = useQuery()
  const { failure, more, turns: read } = useTurns(session, sessionKey, chosen !== "")
  const turns = chosen === "" ? read : read?.filter(({ agent = "none" }) => agent === chosen)
  const tools = useTools(turns ?? [])
  if (turns === undefined) return <Section name={t.turns}>{failure ?? <Loading />}</Section>
  const hasAgents = turns.some(({ agent }) => agent !== undefined)
  const columns: ReadonlyArray<Column> = [
    { name: requests.time, rank: 1, width: "9.4rem" },
    ...hasAgents ? [{ name: usage.groups.agent, rank: 2, width: "9rem" } as const] : [],
    { name: requests.model, rank: 2 },
    { name: t.tools, rank: 2 },
    { name: requests.outcome, rank: 1, width: "13rem" },
    { name: requests.duration, rank: 2, number: true, width: "5.4rem" },
    { name: requests.in, rank: 3, number: true, width: "4.6rem" },
    { name: requests.out, rank: 3, number: true, width: "4.6rem" },
    ...currency === undefined
      ? []
      : [{ name: requests.costIn(currency), rank: 2, number: true, width: "6.7rem" } as const]
  ]
  return (
    <Section name={t.turns}>
      {chosen !== "" && (
        <Chip
          class="chosen start"
          aria-label={usage.remove(usage.groups.agent)}
          onClick={() => choose({ agent: "" })}
        >
          {usage.groups.agent}: {chosen === "none" ? t.main : chosen} <span aria-hidden="true">×</span>
        </Chip>
      )}
      <div class="sessions">
        <Table name={t.turns} columns={columns} rows={turns.length} empty={<Empty>{t.noTurns}</Empty>}>
          {turns.map((item) => (
            <Row
              key={item.id}
              cells={[
                <a key="time" href={linkTo("requests", item.id)} title={item.request_id}>
                  <When at={item.started_at} />
                </a>,
                ...hasAgents ? [item.agent === undefined ? "" : <code>{item.agent}</code>] : [],
                item.model ?? "–",
                item.calls === 0 ? "" : <span class="hint">{tools.get(item.id) || t.calls(item.calls)}</span>,
                <RequestBadge key="outcome" item={item} />,
                <Took key="took" ms={item.duration_ms} />,
                item.usage === null ? "–" : <Count value={item.usage.prompt_tokens} />,
                item.usage === null ? "–" : <Count value={item.usage.completion_tokens} />,
                ...currency === undefined ? [] : [<Money key="cost" amount={item.cost} currency={currency} inTable />]
              ]}
            />
          ))}
        </Table>
      </div>
      {failure}
      {more !== undefined && (
        <div class="actions">
          <button type="button" onClick={more}>{t.moreTurns}</button>
        </div>
      )}
    </Section>
  )
}

export const SessionPage = ({ of = "" }: { readonly of: string | undefined }) => {
  const { common, sessions: t, usage } = useTexts()
  const { key = "" } = useQuery()
  const query = useMemo(() => ({
    from: new Date(Math.floor(Date.now() / day) * day - days * day).toISOString(),
    by: "key,app,session,agent,parent",
    session: of,
    ...key === "" ? {} : { key },
    limit: String(mostAgents)
  }), [of, key])
  const read = useMemo(() => readOf("admin-usage", "query", { query }), [query])
  useReread(read)
  const kept = useMemo(() =>
    readOf("admin-requests", "sessions", {
      query: { session: of, ...key === "" ? {} : { key: exactly("key", key) } }
    }), [of, key])
  useReread(kept)
  const recorded = useValue(kept)?.sessions[0]
  const { failure } = useReads([kept])
  const requests = { session: of, ...key === "" ? {} : { key: exactly("key", key) } }
  return (
    <>
      <Heading name={t.title(of)}>
        <a class="button" href={linkTo("requests", undefined, requests)}>{usage.itsRequests}</a>
      </Heading>
      {failure}
      <Loaded atom={read}>
        {({ currency, rows, totals }) => {
          const [first] = rows
          return (
            <>
              <dl class="card facts-grid">
                {([
                  [usage.groups.app, first?.app],
                  [
                    usage.groups.key,
                    first?.key === undefined
                      ? undefined
                      : first.key_name ?? usage.specialKeys(first.key) ?? <code>{first.key}</code>
                  ],
                  [t.models, recorded?.models.join(", ")],
                  [t.start, recorded === undefined ? undefined : exactTime(recorded.from)],
                  [
                    t.end,
                    recorded === undefined
                      ? undefined
                      : `${exactTime(recorded.to)}, ${t.after(duration(recorded.to - recorded.from))}`
                  ],
                  [
                    usage.requests,
                    `${number(totals.requests)}${totals.failed === 0 ? "" : `, ${t.failedOf(number(totals.failed))}`}`
                  ],
                  [t.time, duration(totals.duration_ms)],
                  [usage.tokens, number(totals.total_tokens)],
                  [usage.fromCache, percent(totals.cached_tokens, totals.prompt_tokens)],
                  [
                    usage.cost,
                    currency === null ? undefined : <Money key="cost" amount={totals.cost} currency={currency} />
                  ]
                ] as ReadonlyArray<readonly [name: string, value: ComponentChildren]>).map(([name, value]) =>
                  value === undefined ? null : (
                    <div key={name}>
                      <dt>{name}</dt>
                      <dd>{value}</dd>
                    </div>
                  )
                )}
              </dl>
              {rows.some(({ agent }) => agent !== "none") && (
                <Section name={t.agents}>
                  <Table
                    name={t.agents}
                    columns={[
                      { name: usage.groups.agent, rank: 1 },
                      { name: usage.requests, rank: 2, number: true },
                      { name: usage.failed, rank: 3, number: true },
                      { name: t.time, rank: 2, number: true },
                      { name: usage.tokens, rank: 3, number: true },
                      { name: usage.fromCache, rank: 3, number: true },
                      ...currency === null ? [] : [{ name: common.costIn(currency), rank: 2, number: true } as const]
                    ]}
                    rows={rows.length}
                    empty=""
                    compact
                  >
                    {treeOf(rows).map(({ depth, row }) => (
                      <Row
                        key={`${row.agent} ${row.parent}`}
                        cells={[
                          <>
                            <span class="indent" style={{ width: `${1.5 * depth}rem` }} />
                            <a href={linkTo("sessions", of, { key, agent: row.agent ?? "" })}>
                              {row.agent === "none" ? t.main : <code>{row.agent}</code>}
                            </a>
                          </>,
                          number(row.requests),
                          number(row.failed),
                          duration(row.duration_ms),
                          <Count key="tokens" value={row.total_tokens} />,
                          percent(row.cached_tokens, row.prompt_tokens),
                          ...currency === null
                            ? []
                            : [<Money key="cost" amount={row.cost} currency={currency} inTable />]
                        ]}
                      />
                    ))}
                  </Table>
                </Section>
              )}
            </>
          )
        }}
      </Loaded>
      <Turns session={of} sessionKey={key} />
    </>
  )
}
