/**
 * One sentence of what needs attention, under the title.
 */
import { Badge } from "../../parts/Badge.tsx"
import { useReads } from "../../parts/Loaded.tsx"
import { keysAtom, nearLimits, troubled } from "../../state/attention.ts"
import { useAtom, useValue } from "../../state/registry.ts"
import { standingOf } from "../../state/standing.ts"
import { useTexts } from "../../state/texts.ts"
import { upstreamsAtom } from "../../state/upstreams.ts"
import { knownAtom } from "./accounts.ts"
import { needs } from "./Attention.tsx"
import { hourAtom, settingsAtom } from "./reads.ts"

/** The most upstreams that are named. */
const mostNamed = 2

/** How many things need attention, and what they are, the worst first. What clients do wrong needs none. */
const useNeeds = (): { readonly count: number; readonly parts: ReadonlyArray<string> } => {
  const t = useTexts().overview
  const upstreams = troubled(useValue(upstreamsAtom)?.upstreams ?? [])
  const { counts } = useAtom(knownAtom)
  const failed = useFailed()
  const keys = nearLimits(useValue(keysAtom)?.items ?? []).length
  const errors = (useValue(hourAtom)?.errors ?? []).filter(({ fault }) => fault !== "caller").length
  const warnings = useValue(settingsAtom)?.warnings.length ?? 0
  const now = Date.now()
  const counted = [
    [counts?.out ?? 0, t.needs.out],
    [failed, t.needs.failed],
    [counts?.cooling ?? 0, t.needs.cooling],
    [keys, t.needs.keys],
    [errors, t.needs.errors],
    [warnings, t.needs.warnings]
  ] as const
  return {
    count: counted.reduce((sum, [count]) => sum + count, upstreams.length),
    parts: [
      ...upstreams.length > mostNamed
        ? [t.needs.upstreams(upstreams.length)]
        : upstreams.map((item) => t.needs.upstream(item.name, standingOf(item, now) === "away")),
      ...counted.flatMap(([count, say]) => count === 0 ? [] : [say(count)])
    ]
  }
}

/** Accounts in rotation whose last test failed. */
const useFailed = (): number => {
  const { causes } = useAtom(knownAtom)
  return causes.reduce((sum, { accounts, state }) => sum + (state === "failed" ? accounts : 0), 0)
}

export const Sentence = () => {
  const t = useTexts().overview
  const { failure, isRead } = useReads(needs)
  const { count, parts } = useNeeds()
  const { counts } = useAtom(knownAtom)
  // What was not read says nothing, neither good nor bad: the cards say that it failed.
  return (
    <p class="state-of-all" role="status" aria-label={t.stateOfAll}>
      {isRead && failure === null && (count === 0
        ? <Badge sign="✓" tone="good" text={t.allWell(counts?.ready ?? 0, counts?.all ?? 0)} />
        : (
          <>
            <Badge sign="▲" tone="warn" text={t.needsYou(count)} /> {t.listed(parts)}
          </>
        ))}
    </p>
  )
}
