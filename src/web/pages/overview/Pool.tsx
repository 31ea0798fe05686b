/**
 * The pool as a strip of cells, one for each account, and as a count of each state.
 */
import { useState } from "preact/hooks"
import { AccountBadge, accountSigns, type AccountState, stateOf } from "../../parts/Badge.tsx"
import { number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Sign } from "../../parts/Icon.tsx"
import { Loading, useReads } from "../../parts/Loaded.tsx"
import { poolAtom, type PoolNow, type Received } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom, useValue } from "../../state/registry.ts"
import { runningAtom } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { type UpstreamItem, upstreamsAtom } from "../../state/upstreams.ts"
import { knownAtom } from "./accounts.ts"
import { moveInStrip } from "./strip.ts"

const linkToAccount = (item: Received["item"]): string => linkTo("accounts", accountName(item))

/** How many accounts are in each state; together they are all accounts. The place of an upstream that needs no account counts as no account. */
const countsOf = (
  { cooling, disabled, out, total }: PoolNow,
  standIns: ReadonlyArray<UpstreamItem>
): ReadonlyArray<readonly [AccountState, number]> =>
  Object.entries({ ready: total - cooling - out, cooling, out, disabled }).map(([name, count]) => {
    const state = name as AccountState
    return [state, standIns.reduce((left, { accounts }) => Math.max(0, left - accounts[state]), count)]
  })

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

export const Pool = () => {
  const { overview: t, states } = useTexts()
  const pool = useAtom(poolAtom)
  const running = useAtom(runningAtom)
  const { failedTests, isAll, items, reads } = useAtom(knownAtom)
  const upstreams = useValue(upstreamsAtom)?.upstreams
  const { failure, isRead } = useReads([upstreamsAtom, ...reads])
  if (pool === undefined || upstreams === undefined) {
    return <Section name={t.pool}>{failure ?? <Loading />}</Section>
  }
  const standIns = upstreams.filter(({ needs_accounts }) => !needs_accounts)
  const counts = countsOf(pool, standIns)
  const all = counts.reduce((sum, [, count]) => sum + count, 0)
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
          {[...counts, ["failed", failedTests] as const].map(([state, count]) => (
            <li key={state} class={state === "failed" ? "apart" : ""}>
              <a
                class={`count-of ${count === 0 || state === "ready" ? "" : accountSigns[state].tone}`}
                href={linkTo("accounts", undefined, { state })}
              >
                <span class={`sign ${accountSigns[state].tone}`}>
                  <Sign of={accountSigns[state].sign} />
                </span>
                <strong>{number(count)}</strong> {states[state]}
              </a>
            </li>
          ))}
        </ul>
        {isAll && items.length > 0 && <Cells items={items} />}
        {!isAll && all > 0 && (
          <div class="shares" aria-hidden="true">
            {counts.map(([state, count]) => (
              <span key={state} class={`cell ${state}`} style={{ flexGrow: count, flexBasis: count === 0 ? 0 : 3 }} />
            ))}
          </div>
        )}
        {isRead && all === 0 && standIns.length === 0 && (
          <p class="hint">
            {t.noAccounts} <a href={linkTo("accounts")}>{t.addAccounts}</a>
          </p>
        )}
      </div>
    </Section>
  )
}
