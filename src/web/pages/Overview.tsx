/**
 * Overview: the pool, the queue and what runs, as it is now.
 */
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import { countdown, duration, number } from "../parts/format.ts"
import { Heading } from "../parts/Heading.tsx"
import { Loading } from "../parts/Loaded.tsx"
import { State } from "../parts/State.tsx"
import { Table } from "../parts/Table.tsx"
import { secondsLeft, stateOf } from "../state/account.ts"
import type { Heard } from "../state/live.ts"
import { clockAtom, heardAtom, poolAtom, queueAtom } from "../state/live.ts"
import { useTexts } from "../state/preferences.ts"
import { useAtom } from "../state/registry.ts"
import { linkTo } from "../state/route.ts"
import { runningAtom } from "../state/running.ts"
import { sessionAtom } from "../state/session.ts"
import type { PoolNow } from "../state/types.ts"
import { Durability } from "./Durability.tsx"

const Figure = ({ children, name, of, share, tone = "" }: {
  readonly name: string
  readonly children: ComponentChildren
  /** What the number is a part of. */
  readonly of?: string | undefined
  /** That part, from 0 to 1, drawn as a bar. */
  readonly share?: number
  readonly tone?: string
}) => (
  <div class={`figure ${tone}`} role="group" aria-label={name}>
    <p>
      <strong>{children}</strong>
      {of === undefined ? null : <span class="of">{` ${of}`}</span>}
    </p>
    <p class="name">{name}</p>
    {share === undefined
      ? null
      : (
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${Math.min(100, share * 100)}%` }} />
        </span>
      )}
  </div>
)

const shownAccounts = 50

/** Those that do something or are held back, the busiest first. */
const worthShowing = (heard: ReadonlyMap<string, Heard>): ReadonlyArray<Heard> =>
  [...heard.values()]
    .filter(({ item }) => item.in_use > 0 || (item.health !== "ready" && !item.disabled))
    .sort((a, b) => b.item.in_use - a.item.in_use || (a.item.identifier < b.item.identifier ? -1 : 1))

const AccountsInUse = ({ pool }: { readonly pool: PoolNow }) => {
  const t = useTexts()
  const heard = useAtom(heardAtom)
  const now = useAtom(clockAtom)
  const accounts = useMemo(() => worthShowing(heard), [heard])
  const more = pool.more || accounts.length > shownAccounts
  return (
    <section>
      <h2>{t.overview.inUse}</h2>
      <Table
        name={t.overview.inUse}
        columns={[
          { name: t.overview.account },
          { name: t.overview.slotsOf, number: true },
          { name: t.overview.state }
        ]}
        rows={accounts.length}
        empty={t.overview.noneInUse}
      >
        {accounts.slice(0, shownAccounts).map(({ at, item }) => {
          const left = secondsLeft(item, at, now)
          return (
            <tr key={item.identifier}>
              <th scope="row" class="text">{item.identifier}</th>
              <td class="number">{t.common.of(number(item.in_use), number(pool.max_inflight_per_account))}</td>
              <td>
                <State state={stateOf(item)} />
                {left === undefined || stateOf(item) === "disabled"
                  ? null
                  : <span class="hint">{` ${t.backIn(countdown(left))}`}</span>}
                {item.health_reason === null || item.health === "ready"
                  ? null
                  : <span class="hint clip" title={item.health_reason}>{` ${item.health_reason}`}</span>}
              </td>
            </tr>
          )
        })}
      </Table>
      {more ? <p class="hint">{t.overview.more}</p> : null}
    </section>
  )
}

const QueueNow = () => {
  const t = useTexts()
  const queue = useAtom(queueAtom)
  const waiters = queue?.waiters ?? []
  const since = Math.max(0, useAtom(clockAtom) - (queue?.at ?? 0))
  return (
    <section>
      <h2>{t.overview.queue}</h2>
      <Table
        name={t.overview.queue}
        columns={[
          { name: t.overview.waited, number: true },
          { name: t.overview.style },
          { name: t.overview.wanted }
        ]}
        rows={waiters.length}
        empty={t.overview.noneWait}
      >
        {waiters.map((waiter, index) => (
          <tr key={index}>
            <td class="number">{duration(waiter.age_ms + since)}</td>
            <td>{waiter.style}</td>
            <td class="text">{waiter.account ?? t.overview.any}</td>
          </tr>
        ))}
      </Table>
    </section>
  )
}

export const Overview = () => {
  const t = useTexts()
  const pool = useAtom(poolAtom)
  const queue = useAtom(queueAtom)
  const running = useAtom(runningAtom)
  const session = useAtom(sessionAtom)
  return (
    <>
      <Heading name={t.common.pages.overview} />
      {session.generatedKey
        ? (
          <p class="notice warn">
            {t.overview.generatedKey} <a href={linkTo("settings")}>{t.common.pages.settings}</a>
          </p>
        )
        : null}
      <Durability />
      {pool === undefined ? <Loading /> : (
        <>
          <div class="figures">
            <Figure
              name={t.overview.slots}
              of={t.overview.of(pool.global_max_inflight)}
              share={pool.global_max_inflight === 0 ? 0 : pool.in_use / pool.global_max_inflight}
            >
              {number(pool.in_use)}
            </Figure>
            <Figure
              name={t.overview.waiting}
              of={queue === undefined ? undefined : t.overview.of(queue.max_queue_size)}
              tone={(queue?.waiting ?? 0) > 0 ? "warn" : ""}
            >
              {number(queue?.waiting ?? 0)}
            </Figure>
            <Figure name={t.overview.running}>{number(running)}</Figure>
            <Figure name={t.overview.ready} of={t.overview.of(pool.total)}>
              {number(Math.max(0, pool.total - pool.cooling - pool.out))}
            </Figure>
            <Figure name={t.overview.cooling} tone={pool.cooling > 0 ? "warn" : ""}>{number(pool.cooling)}</Figure>
            <Figure name={t.overview.out} tone={pool.out > 0 ? "bad" : ""}>{number(pool.out)}</Figure>
            <Figure name={t.overview.disabled}>{number(pool.disabled)}</Figure>
          </div>
          <div class="columns">
            <AccountsInUse pool={pool} />
            <QueueNow />
          </div>
        </>
      )}
    </>
  )
}
