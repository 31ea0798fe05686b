/**
 * What a target's upstream does now, and what a request would do at the whole route.
 */
import { Badge } from "../../parts/Badge.tsx"
import { number } from "../../parts/format.ts"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { standingOf } from "../../state/standing.ts"
import { useTexts } from "../../state/texts.ts"
import type { RouteNow, TargetNow } from "./choice.ts"

/** Why a target takes no request now, as the page of upstreams says it, or how many slots are free; and whether the next request takes it. */
export const TargetState = ({ isTaken, target: { hindrance, upstream, weight } }: {
  readonly target: TargetNow
  readonly isTaken: boolean
}) => {
  const t = useTexts().routes
  const free = upstream === undefined ? 0 : Math.max(0, upstream.max_inflight - upstream.in_use)
  return (
    <div class="hint">
      {isTaken && (
        <>
          <Badge sign="➜" tone="good" text={t.taken} />
          {" · "}
        </>
      )}
      {hindrance === undefined
        ? t.free(number(free), number(upstream?.max_inflight ?? 0))
        : (hindrance === "unknown" || hindrance === "noModel" || hindrance === "full") && t.hindrances[hindrance]}
      {weight !== undefined && ` · ${t.weightIs(number(weight))}`}
      {upstream !== undefined && standingOf(upstream, Date.now()) !== "ready" && (
        <>
          {(hindrance === undefined || weight !== undefined) && " · "}
          <UpstreamBadge item={upstream} />
        </>
      )}
    </div>
  )
}

/** What a request would do now, in one sentence. */
export const Verdict = ({ now: { reason, taken, targets }, wait }: {
  readonly now: RouteNow
  readonly wait: number
}) => {
  const t = useTexts().routes
  const target = taken === undefined ? "" : targets[taken]!.text
  return <p class="hint">{t.reasons[reason](target, number(wait))}</p>
}
