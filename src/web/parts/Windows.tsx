/**
 * What is used of the windows of an account: of its server's quota, and of its budgets.
 */
import type { AccountItem } from "../state/client.ts"
import { type LimitWindow, type UsedLimit, usedOf } from "../state/limits.ts"
import { useTexts } from "../state/texts.ts"
import { percent, shortWhen, timeOfDay } from "./format.ts"
import { Meter } from "./Table.tsx"
import { usedText } from "./UsedText.ts"

type QuotaWindow = AccountItem["quota"][number]

/** When a window resets: to the second within the hour, else to the minute, with the day if it is another one. */
const resetText = (at: number, now: number): string => at - now < 3_600_000 ? timeOfDay(at) : shortWhen(at, now)

/** The used share. A window whose reset has passed is empty. */
const shareOf = ({ resets_at, status, used }: QuotaWindow, now: number): number =>
  resets_at <= now ? 0 : status === "exhausted" ? 1 : used

const QuotaMeter = ({ now, of }: { readonly of: QuotaWindow; readonly now: number }) => {
  const t = useTexts().windows
  const { model, resets_at, window } = of
  const share = shareOf(of, now)
  const text = t.used(t.names[window] ?? window, model, share >= 1 ? t.usedUp : percent(share, 1))
  return <Meter used={share} limit={1} text={resets_at <= now ? text : t.resets(text, resetText(resets_at, now))} />
}

const BudgetMeter = ({ currency, now, of }: {
  readonly of: UsedLimit
  readonly now: number
  readonly currency: string | undefined
}) => {
  const { keys, windows: t } = useTexts()
  const text = usedText(of, keys, currency)
  return (
    <Meter
      used={Number(of.used)}
      limit={Number(of.limit)}
      text={t.resets(text, resetText(Date.parse(of.resets_at), now))}
    />
  )
}

/** What has windows. */
export interface Usable {
  /** Of an upstream. */
  readonly name?: string | undefined
  /** 16 windows at most. */
  readonly quota?: AccountItem["quota"] | undefined
  readonly budgets?: ReadonlyArray<LimitWindow> | undefined
}

/** The fullest window as a bar. A click shows the others, the fuller ones first. */
export const Windows = ({ budgets = [], currency, now, quota = [] }: Usable & {
  /** Unix milliseconds. */
  readonly now: number
  /** That of budgets of money. */
  readonly currency: string | undefined
}) => {
  const t = useTexts().windows
  const [first, ...others] = [
    ...usedOf(budgets).map((each) => ({
      share: each.share,
      meter: <BudgetMeter key={`budget ${each.window} ${each.kind}`} of={each} now={now} currency={currency} />
    })),
    ...quota.map((each) => ({
      share: shareOf(each, now),
      meter: <QuotaMeter key={`${each.window} ${each.model}`} of={each} now={now} />
    }))
  ].sort((a, b) => b.share - a.share).map(({ meter }) => meter)
  if (first === undefined || others.length === 0) return first ?? null
  return (
    <details class="windows">
      <summary class="line">
        {first}
        <span class="hint" title={t.more(others.length)}>+{others.length}</span>
      </summary>
      {others}
    </details>
  )
}
