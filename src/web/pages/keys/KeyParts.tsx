/**
 * What the list of keys and the page of a key share.
 */
import { Badge } from "../../parts/Badge.tsx"
import { DeleteDialog } from "../../parts/Dialog.tsx"
import { date, dayOf, exactTime, shortWhen } from "../../parts/format.ts"
import { Meter } from "../../parts/Table.tsx"
import { Ago } from "../../parts/Time.tsx"
import { usedText } from "../../parts/UsedText.ts"
import { act } from "../../state/actions.ts"
import { useCurrency } from "../../state/currency.ts"
import { fullest, limitsOf } from "../../state/limits.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { changedBy } from "./KeyForm.tsx"
import type { KeyItem } from "./keys.ts"

const signs = {
  active: { sign: "●", tone: "good" },
  disabled: { sign: "○", tone: "muted" },
  expired: { sign: "▲", tone: "bad" }
} as const

/** The requests of a key, by its id. */
export const requestsOf = (id: string, query: Readonly<Record<string, string>> = {}): string =>
  linkTo("requests", undefined, { key: `"${id}"`, ...query })

/** What happens at the limits of a window, beside that requests are refused. */
const Rules = ({ of: { fallback, strict, window } }: { readonly of: KeyItem["limits"][number] }) => {
  const t = useTexts().keys
  const text = t.rulesOf(window, strict, fallback)
  return strict || fallback !== null ? <span class="hint rest" title={text}>{text}</span> : null
}

/** How much of the limit is used of which the largest share is used; the others are on the key's page. */
export const Tightest = ({ item }: { readonly item: KeyItem }) => {
  const t = useTexts().keys
  const currency = useCurrency()
  const limit = fullest(item)
  const others = limitsOf(item).length - 1
  if (limit === undefined) return <span class="hint">{t.noLimits}</span>
  const rules = item.limits.find(({ window }) => window === limit.window)
  return (
    <div class="line">
      <Meter used={Number(limit.used)} limit={Number(limit.limit)} text={usedText(limit, t, currency)} />
      {others > 0 && <a class="hint" href={linkTo("keys", item.id)}>{t.moreLimits(others)}</a>}
      {rules !== undefined && <Rules of={rules} />}
    </div>
  )
}

/** How much of each limit is used, and when it begins anew. */
export const Used = ({ item }: { readonly item: KeyItem }) => {
  const { keys: t, windows } = useTexts()
  const currency = useCurrency()
  const limits = limitsOf(item)
  if (limits.length === 0) return <span class="hint">{t.noLimits}</span>
  return (
    <>
      {limits.map((each) => (
        <Meter
          key={`${each.window} ${each.kind}`}
          used={Number(each.used)}
          limit={Number(each.limit)}
          text={windows.resets(usedText(each, t, currency), shortWhen(Date.parse(each.resets_at)))}
        />
      ))}
      {item.limits.map((each) => <Rules key={each.window} of={each} />)}
    </>
  )
}

/** Days from today on within which the year of a day is plain. */
const plainDays = 300

/** The day on which a key ends. */
const endOf = (at: number): string => Math.abs(at - Date.now()) < plainDays * 24 * 3_600_000 ? dayOf(at) : date(at)

/** The state of a key, and until when it is valid. */
export const KeyState = ({ item }: { readonly item: KeyItem }) => {
  const t = useTexts().keys
  return (
    <div class="line">
      <Badge {...signs[item.state]} text={t.states[item.state]} />
      {item.expires_at !== null && (
        <span class="hint" title={exactTime(Date.parse(item.expires_at))}>
          {t.until(endOf(Date.parse(item.expires_at)))}
        </span>
      )}
      {item.class === "background" && <span class="hint">{t.background}</span>}
      {item.generated === true && <span class="hint rest" title={t.generated}>{t.generated}</span>}
    </div>
  )
}

/** Says what ends with a key. */
export const DeleteKey = ({ item, onClose }: { readonly item: KeyItem; readonly onClose: () => void }) => {
  const t = useTexts().keys
  const { id, preview, usage } = item
  const name = item.name ?? preview
  return (
    <DeleteDialog
      name={name}
      onClose={onClose}
      onDelete={() =>
        act((client) => client["admin-keys"].remove({ params: { key: id } }), {
          done: () => t.deleted(name),
          subjects: changedBy
        })}
    >
      <code>{preview}</code>
      <br />
      {t.workOf(usage.in_flight, usage.requests_today)} {usage.last_used_at === null ? t.neverUsed : (
        <>
          {t.lastUsed}: <Ago at={Date.parse(usage.last_used_at)} />.
        </>
      )}
      <br />
      {t.deleteAsk}
    </DeleteDialog>
  )
}

export const setDisabled = (item: KeyItem, disabled: boolean, t: ReturnType<typeof useTexts>["keys"]): void => {
  const name = item.name ?? item.preview
  void act((client) => client["admin-keys"].change({ params: { id: item.id }, payload: { disabled } }), {
    done: () => disabled ? t.disabledNow(name) : t.enabledNow(name),
    undo: () => setDisabled(item, !disabled, t),
    subjects: changedBy
  })
}
