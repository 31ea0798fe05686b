/**
 * The overview: its sentence and figures, what needs attention, the last hour, the pool, the queue, the upstreams, and what is used most today.
 */
import { duration } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Loading } from "../../parts/Loaded.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { clockAtom, queueAtom } from "../../state/live.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { useCurrentAccounts } from "./accounts.ts"
import { Attention } from "./Attention.tsx"
import { Figures } from "./Figures.tsx"
import { Leaders } from "./Leaders.tsx"
import { Minutes } from "./Minutes.tsx"
import { Pool } from "./Pool.tsx"
import { Sentence } from "./Sentence.tsx"
import { UpstreamRows } from "./UpstreamRows.tsx"

const Queue = () => {
  const { common, overview: t, requests } = useTexts()
  const queue = useAtom(queueAtom)
  const waiters = queue?.waiters ?? []
  const since = Math.max(0, useAtom(clockAtom) - (queue?.at ?? 0))
  const waiting = queue?.waiting ?? 0
  if (queue === undefined) {
    return (
      <Section name={t.queue}>
        <Loading />
      </Section>
    )
  }
  return (
    <Section
      name={t.queue}
      actions={
        <a class={`live ${waiting > 0 ? "badge warn" : ""}`} href={linkTo("requests", undefined, { outcome: "open" })}>
          {t.waitingOf(waiting, queue.max_queue_size)}
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

/** What needs attention stands first. */
export const Details = () => {
  useCurrentAccounts()
  return (
    <>
      <Sentence />
      <Figures />
      <div class="columns overview">
        <Attention />
        <div class="stack">
          <Minutes />
          <Pool />
          <Queue />
        </div>
      </div>
      <UpstreamRows />
      <Leaders />
    </>
  )
}
