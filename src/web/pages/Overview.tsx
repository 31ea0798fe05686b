/**
 * Overview: the present state of the pool, the queue and the running requests.
 */
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import { AccountBadge } from "../parts/Badge.tsx"
import { duration, number } from "../parts/format.ts"
import { Heading, Section } from "../parts/Heading.tsx"
import { Loading } from "../parts/Loaded.tsx"
import { numbers, Table } from "../parts/Table.tsx"
import { clockAtom, poolAtom, type PoolNow, queueAtom, type Received, receivedAtom } from "../state/live.ts"
import { accountName } from "../state/names.ts"
import { useTexts } from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"
import { runningAtom } from "../state/requests.ts"
import { linkTo } from "../state/route.ts"
import { sessionAtom } from "../state/session.ts"
import { DurabilityNotice } from "./configuration.tsx"

const Figure = ({ children, name, of, share, tone = "" }: {
  readonly name: string
  readonly children: ComponentChildren
  /** The whole that the number is a part of. */
  readonly of?: string | undefined
  /** The share of the whole, from 0 to 1, drawn as a bar. */
  readonly share?: number
  readonly tone?: string
}) => (
  <div class={`figure ${tone}`} role="group" aria-label={name}>
    <p>
      <strong>{children}</strong>
      {of !== undefined && <span class="of">{` ${of}`}</span>}
    </p>
    <p class="name">{name}</p>
    {share !== undefined && (
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${Math.min(100, share * 100)}%` }} />
      </span>
    )}
  </div>
)

const shownAccounts = 50

/** Accounts that are in use or held back, the busiest first. */
const worthShowing = (received: ReadonlyMap<string, Received>): ReadonlyArray<Received> =>
  [...received.values()]
    .filter(({ item }) => item.in_use > 0 || (item.health !== "ready" && !item.disabled))
    .sort((a, b) => b.item.in_use - a.item.in_use || (accountName(a.item) < accountName(b.item) ? -1 : 1))

const AccountsInUse = ({ pool }: { readonly pool: PoolNow }) => {
  const { common, overview: t } = useTexts()
  const received = useAtom(receivedAtom)
  const accounts = useMemo(() => worthShowing(received), [received])
  return (
    <Section name={t.inUse}>
      <Table
        name={t.inUse}
        columns={[t.account, ...numbers(t.slotsOf), t.state]}
        rows={accounts.length}
        empty={t.noneInUse}
      >
        {accounts.slice(0, shownAccounts).map(({ at, item }) => (
          <tr key={accountName(item)}>
            <th scope="row" class="text">{accountName(item)}</th>
            <td class="number">{common.of(number(item.in_use), number(pool.max_inflight_per_account))}</td>
            <td>
              <AccountBadge item={item} receivedAt={at} />
            </td>
          </tr>
        ))}
      </Table>
      {(pool.more || accounts.length > shownAccounts) && <p class="hint">{t.more}</p>}
    </Section>
  )
}

const Queue = () => {
  const t = useTexts().overview
  const queue = useAtom(queueAtom)
  const waiters = queue?.waiters ?? []
  const since = Math.max(0, useAtom(clockAtom) - (queue?.at ?? 0))
  return (
    <Section name={t.queue}>
      <Table
        name={t.queue}
        columns={[...numbers(t.waited), t.style, t.wanted]}
        rows={waiters.length}
        empty={t.noneWait}
      >
        {waiters.map((waiter, index) => (
          <tr key={index}>
            <td class="number">{duration(waiter.age_ms + since)}</td>
            <td>{waiter.style}</td>
            <td class="text">{waiter.account ?? t.any}</td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}

export const Overview = () => {
  const { common, overview: t, states } = useTexts()
  const pool = useAtom(poolAtom)
  const queue = useAtom(queueAtom)
  const running = useAtom(runningAtom)
  const session = useAtom(sessionAtom)
  return (
    <>
      <Heading name={common.pages.overview} />
      {session.generatedKey && (
        <p class="notice warn">
          {t.generatedKey} <a href={linkTo("settings")}>{common.pages.settings}</a>
        </p>
      )}
      <DurabilityNotice />
      {pool === undefined ? <Loading /> : (
        <>
          <div class="figures">
            <Figure
              name={t.slots}
              of={t.of(pool.global_max_inflight)}
              share={pool.global_max_inflight === 0 ? 0 : pool.in_use / pool.global_max_inflight}
            >
              {number(pool.in_use)}
            </Figure>
            <Figure
              name={t.waiting}
              of={queue === undefined ? undefined : t.of(queue.max_queue_size)}
              tone={(queue?.waiting ?? 0) > 0 ? "warn" : ""}
            >
              {number(queue?.waiting ?? 0)}
            </Figure>
            <Figure name={t.running}>{number(running)}</Figure>
            <Figure name={t.ready} of={t.of(pool.total)}>
              {number(Math.max(0, pool.total - pool.cooling - pool.out))}
            </Figure>
            <Figure name={states.cooling} tone={pool.cooling > 0 ? "warn" : ""}>{number(pool.cooling)}</Figure>
            <Figure name={states.out} tone={pool.out > 0 ? "bad" : ""}>{number(pool.out)}</Figure>
            <Figure name={states.disabled}>{number(pool.disabled)}</Figure>
          </div>
          <div class="columns">
            <AccountsInUse pool={pool} />
            <Queue />
          </div>
        </>
      )}
    </>
  )
}
