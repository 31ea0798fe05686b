/**
 * Overview: whether the gateway is well. The last hour, what needs attention, the pool, and the queue.
 */
import { duration } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Lazy } from "../../parts/Loaded.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { clockAtom, queueAtom } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { sessionAtom } from "../../state/session.ts"
import { DurabilityNotice } from "../configuration.tsx"
import { useCurrentAccounts } from "./accounts.ts"
import { Attention } from "./Attention.tsx"
import { FirstRunNotice } from "./FirstRunNotice.tsx"
import { Minutes } from "./Minutes.tsx"
import { Pool } from "./Pool.tsx"

/** Not needed for the first figures. */
const loadUpstreamRows = () => import("./UpstreamRows.tsx").then((module) => module.UpstreamRows)

const Queue = () => {
  const { common, overview: t, requests } = useTexts()
  const queue = useAtom(queueAtom)
  const waiters = queue?.waiters ?? []
  const since = Math.max(0, useAtom(clockAtom) - (queue?.at ?? 0))
  const waiting = queue?.waiting ?? 0
  return (
    <Section
      name={t.queue}
      actions={
        <a class={`live ${waiting > 0 ? "badge warn" : ""}`} href={linkTo("requests", undefined, { outcome: "open" })}>
          {t.waitingOf(waiting, queue?.max_queue_size ?? 0)}
        </a>
      }
    >
      {waiters.length === 0 ?
        <p class="hint">{t.noneWait}</p> :
        (
          <Table name={t.queue} columns={[...numbers(t.waited), t.style, t.wanted]} rows={waiters.length} empty="">
            {waiters.map((waiter, index) => (
              <tr key={index}>
                <td class="number">{duration(waiter.age_ms + since)}</td>
                <td>{requests.styles(waiter.style)}</td>
                <td class="text">{waiter.account ?? t.any}</td>
              </tr>
            ))}
          </Table>
        )}
      {waiting > waiters.length && <p class="hint">{common.andMore(waiting - waiters.length)}</p>}
    </Section>
  )
}

export const Overview = () => {
  const { common, overview: t } = useTexts()
  const session = useAtom(sessionAtom)
  useCurrentAccounts()
  return (
    <>
      <Heading name={common.pages.overview} />
      {session.generatedKey && (
        <p class="notice warn">
          {t.generatedKey} <a href={linkTo("settings")}>{common.pages.settings}</a>
        </p>
      )}
      <DurabilityNotice />
      <FirstRunNotice />
      <Minutes />
      <Lazy load={loadUpstreamRows} of={undefined} />
      <div class="columns overview">
        <Attention />
        <div class="stack">
          <Pool />
          <Queue />
        </div>
      </div>
    </>
  )
}
