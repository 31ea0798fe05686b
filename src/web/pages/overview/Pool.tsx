/**
 * The pool as a count of each state, and as cells: one for each account, or for each that is not idle where there are many.
 */
import { useState } from "preact/hooks"
import { AccountBadge, accountSigns, accountStates, stateOf } from "../../parts/Badge.tsx"
import { number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Sign } from "../../parts/Icon.tsx"
import { Loading, useReads } from "../../parts/Loaded.tsx"
import { moveInStrip } from "../../parts/strip.ts"
import { poolAtom, type Received } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { useAtom, useValue } from "../../state/registry.ts"
import { runningAtom } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { upstreamsAtom } from "../../state/upstreams.ts"
import { accountsAtom, type Counts, knownAtom } from "./accounts.ts"

const linkToAccount = (item: Received["item"]): string => linkTo("accounts", accountName(item))

/** A pool of so many accounts has a cell for each. */
const mostOfCells = 60

/** The most cells of a larger pool, whose idle accounts are one bar. */
const mostNotIdle = 120

/** What a cell shows: an account that works or is held back. */
const isIdle = ({ item }: Received): boolean => {
  const state = stateOf(item)
  return state === "disabled" || (state === "ready" && item.in_use === 0)
}

const Cell = ({ isStop, item, onShow }: {
  readonly item: Received["item"]
  readonly isStop: boolean
  readonly onShow: (name: string) => void
}) => {
  const { common, states } = useTexts()
  const state = stateOf(item)
  const name = accountName(item)
  const slots = Math.max(1, item.slots)
  return (
    <a
      class={`cell ${state}`}
      href={linkToAccount(item)}
      tabIndex={isStop ? 0 : -1}
      aria-label={`${name}: ${states[state]}, ${common.of(number(item.in_use), number(item.slots))}`}
      onMouseEnter={() => onShow(name)}
      onFocus={() => onShow(name)}
    >
      <span class="fill" style={{ height: `${Math.min(100, (item.in_use / slots) * 100)}%` }} />
      {state !== "ready" && state !== "disabled" && (
        <span class="sign">
          <Sign of={accountSigns[state].sign} />
        </span>
      )}
    </a>
  )
}

const Cells = ({ items }: { readonly items: ReadonlyArray<Received> }) => {
  const t = useTexts().overview
  const [shown, setShown] = useState<string>()
  const names = items.map(({ item }) => accountName(item))
  const stop = names.includes(shown ?? "") ? shown : names[0]
  const found = items.find(({ item }) => accountName(item) === shown)
  return (
    <>
      <div class="cells live" role="group" aria-label={t.accounts} onKeyDown={moveInStrip}>
        {items.map(({ item }, index) => (
          <Cell key={names[index]} item={item} isStop={names[index] === stop} onShow={setShown} />
        ))}
      </div>
      <div class="readout">
        {found === undefined ? <p class="hint">{t.cellHint}</p> : (
          <>
            <a href={linkToAccount(found.item)}>{accountName(found.item)}</a>
            <span>{t.slotsOf(found.item.in_use, found.item.slots)}</span>
            <div>
              <AccountBadge item={found.item} receivedAt={found.at} />
            </div>
          </>
        )}
      </div>
    </>
  )
}

/** The accounts of a large pool: those that are idle as one bar, and a cell for each other one. */
const Many = ({ counts, items }: { readonly items: ReadonlyArray<Received>; readonly counts: Counts }) => {
  const { common, overview: t } = useTexts()
  const others = items.filter((each) => !isIdle(each))
  const busy = others.filter(({ item }) => stateOf(item) === "ready").length
  const idle = Math.max(0, counts.ready - busy)
  const shown = others.slice(0, mostNotIdle)
  return (
    <>
      {idle > 0 && <a class="idle" href={linkTo("accounts", undefined, { state: "ready" })}>{t.idle(idle)}</a>}
      {shown.length > 0 && <Cells items={shown} />}
      {others.length > shown.length && <p class="hint">{common.andMore(others.length - shown.length)}</p>}
    </>
  )
}

export const Pool = () => {
  const { overview: t, states } = useTexts()
  const pool = useAtom(poolAtom)
  const running = useAtom(runningAtom)
  const { counts, isAll, items } = useAtom(knownAtom)
  const upstreams = useValue(upstreamsAtom)?.upstreams
  const { failure } = useReads([upstreamsAtom, accountsAtom])
  if (pool === undefined || upstreams === undefined || counts === undefined) {
    return <Section name={t.pool}>{failure ?? <Loading />}</Section>
  }
  return (
    <Section
      name={t.pool}
      actions={
        <p class="live pool-use">
          <a href={linkTo("accounts")}>{t.slotsInUse(pool.in_use, pool.global_max_inflight)}</a>
          {running !== undefined && (
            <a href={linkTo("requests", undefined, { outcome: "open" })}>{t.runningNow(running)}</a>
          )}
        </p>
      }
    >
      {failure}
      <div class="card pool">
        <ul class="counts">
          {[...accountStates, "failed" as const].map((state) => (
            <li key={state} class={state === "failed" ? "apart" : ""}>
              <a
                class={`count-of ${counts[state] === 0 || state === "ready" ? "" : accountSigns[state].tone}`}
                href={linkTo("accounts", undefined, { state })}
              >
                <span class={`sign ${accountSigns[state].tone}`}>
                  <Sign of={accountSigns[state].sign} />
                </span>
                <strong>{number(counts[state])}</strong> {states[state]}
              </a>
            </li>
          ))}
        </ul>
        {counts.all > 0 && (isAll && counts.all <= mostOfCells
          ? <Cells items={items} />
          : <Many items={items} counts={counts} />)}
        {counts.all === 0 && upstreams.every(({ needs_accounts }) => needs_accounts) && (
          <p class="hint">
            {t.noAccounts} <a href={linkTo("accounts")}>{t.addAccounts}</a>
          </p>
        )}
      </div>
    </Section>
  )
}
