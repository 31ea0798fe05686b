/**
 * What narrows the list of requests: chips with counted values, a range of time, and a search for texts. All of it lives in the
 * address.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import { follow } from "../../parts/follow.ts"
import { countdown, dateTime, duration, number, zoneName } from "../../parts/format.ts"
import { Icon, Sign } from "../../parts/Icon.tsx"
import { useStill } from "../../parts/still.ts"
import { zoneAtom } from "../../state/preferences.ts"
import { registry } from "../../state/registry.ts"
import type { RequestFacets } from "../../state/requests.ts"
import { choose, type Query } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import {
  containing,
  exactly,
  exactValue,
  type FacetName,
  facets,
  fieldOf,
  isRange,
  narrowed,
  nothingNarrowed,
  ranges,
  readTime,
  timeOf
} from "./filter.ts"
import type { Shown } from "./useList.ts"

/** Narrows the list, from its newest request on. */
export const narrow = (changes: Query): void => choose({ ...changes, cursor: "", row: "" })

/** A text that is applied when typing pauses, and immediately by Enter, which calls `onEnter`. */
export const TypedFilter = ({ name, onEnter, onText, value, ...rest }: {
  readonly name: string
  readonly value: string
  readonly onText: (text: string) => void
  readonly onEnter?: () => void
  readonly "data-filter"?: boolean
}) => {
  const [typed, setTyped] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  /** What was applied last: what comes back of it later does not replace what is typed meanwhile. */
  const applied = useRef(value)
  useEffect(() => {
    if (value === applied.current) return
    applied.current = value
    setTyped(value)
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  const apply = (text: string) => {
    clearTimeout(timer.current)
    applied.current = text.trim()
    if (applied.current !== value) onText(applied.current)
  }
  return (
    <input
      {...rest}
      type="text"
      aria-label={name}
      placeholder={name}
      autocomplete="off"
      spellcheck={false}
      value={typed}
      onInput={({ currentTarget: { value: next } }) => {
        setTyped(next)
        clearTimeout(timer.current)
        timer.current = setTimeout(() => apply(next), 300)
      }}
      onBlur={() => apply(typed)}
      onKeyDown={(event) => {
        if (event.key !== "Enter") return
        apply(typed)
        onEnter?.()
      }}
    />
  )
}

/** Puts a pop-up below its button, within the window. */
const place = (popup: HTMLElement, button: HTMLElement): void => {
  const { bottom, left } = button.getBoundingClientRect()
  const { width } = popup.getBoundingClientRect()
  popup.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`
  popup.style.top = `${bottom + 4}px`
  popup.style.maxHeight = `${Math.max(160, innerHeight - bottom - 16)}px`
}

/** A filter as a chip: says what is chosen, opens a pop-up with the choices, and removes the filter. */
const Chip = ({ children, chosen, name, onRemove }: {
  readonly name: string
  /** What is chosen, in words; `undefined` while the filter is not used. */
  readonly chosen: string | undefined
  readonly onRemove: () => void
  /** The content of the pop-up. */
  readonly children: (close: () => void) => ComponentChildren
}) => {
  const t = useTexts().requests
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const popup = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  useLayoutEffect(() => {
    if (!isOpen || popup.current === null || button.current === null) return
    popup.current.querySelector<HTMLElement>("input, button")?.focus()
    return follow(popup.current, button.current, place)
  }, [isOpen])
  const remove = () => {
    onRemove()
    button.current?.focus()
  }
  const move = (step: number) => {
    const all = [...popup.current?.querySelectorAll<HTMLElement>("input, button") ?? []]
    const now = all.findIndex((each) => each === document.activeElement)
    all[Math.max(0, Math.min(all.length - 1, now + step))]?.focus()
  }
  return (
    <div class={`chip ${chosen === undefined ? "" : "chosen"}`}>
      <button ref={button} type="button" class="quiet" aria-expanded={isOpen} popovertarget={id}>
        <span>{chosen === undefined ? name : t.chosen(name, chosen)}</span>
        <Sign of="▾" />
      </button>
      {chosen !== undefined && (
        <button type="button" class="quiet icon-only" aria-label={t.removeFilter(name)} onClick={remove}>
          <Icon name="close" />
        </button>
      )}
      <div
        ref={popup}
        id={id}
        popover="auto"
        role="group"
        aria-label={name}
        class="pop"
        onToggle={(event) => setOpen(event.newState === "open")}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          if (step === undefined) return
          event.preventDefault()
          move(step)
        }}
      >
        {isOpen && children(() => popup.current?.hidePopover())}
      </div>
    </div>
  )
}

type FacetValue = RequestFacets["facets"][FacetName][number]

const FacetChip = ({ busy, counts, failure, filter, name, query }: {
  readonly name: FacetName
  readonly filter: string
  readonly query: Query
  /** `undefined` until they are loaded. */
  readonly counts: ReadonlyArray<FacetValue> | undefined
  /** Why they could not be loaded. */
  readonly failure: string | undefined
  /** The counts are of other filters. */
  readonly busy: boolean
}) => {
  const { common, promptCache, requests: t } = useTexts()
  const wanted = narrowed(query)[filter] ?? ""
  const exact = wanted === "" ? undefined : exactValue(filter, wanted)
  const text = (value: string, keyName?: string | null): string => {
    switch (name) {
      case "outcome":
        return t.outcomes(value)
      case "style":
        return t.styles(value)
      case "prompt_cache":
        return promptCache.names(value)
      case "slow":
        return t.slowerThan(Number(value) < 1000 ? duration(Number(value)) : countdown(Number(value) / 1000))
      case "key":
        return keyName ?? counts?.find((each) => each.value === value)?.name ?? t.keyNames(value)
      default:
        return value
    }
  }
  const part = wanted !== "" && exact === undefined ? wanted : ""
  const isListed = exact === undefined || counts?.some(({ value }) => value === exact) === true
  const values = [...(isListed ? [] : [{ value: exact, name: null, count: 0 }]), ...counts ?? []]
    .filter((each) => `${text(each.value, each.name)} ${each.value}`.toLowerCase().includes(part.toLowerCase()))
  const most = Math.max(1, ...values.map(({ count }) => count))
  const { ref, shown } = useStill<FacetValue, HTMLUListElement>(values, ({ value }) => value, [wanted])
  const remove = () => narrow({ [filter]: "" })
  return (
    <Chip
      name={t.facets[name]}
      chosen={wanted === "" ? undefined : exact === undefined ? t.containing(part) : text(exact)}
      onRemove={remove}
    >
      {(close) => (
        <>
          {containing.has(filter) && (
            <TypedFilter
              name={t.contains(t.facets[name])}
              value={part}
              onText={(next) => narrow({ [filter]: next })}
              onEnter={close}
            />
          )}
          {counts === undefined ? <p class="empty">{failure ?? common.loading}</p> : (
            <ul ref={ref} aria-busy={busy}>
              {shown.map(({ count, name: keyName, value }) => (
                <li key={value}>
                  <button
                    type="button"
                    class="quiet"
                    aria-pressed={value === exact}
                    title={value}
                    onClick={() => {
                      if (value === exact) remove()
                      else narrow({ [filter]: exactly(filter, value) })
                      close()
                    }}
                  >
                    <span class="share" aria-hidden="true" style={{ width: `${(count / most) * 100}%` }} />
                    <span class="value">{text(value, keyName)}</span>
                    <span class="number">{number(count)}</span>
                  </button>
                </li>
              ))}
              {shown.length === 0 && <li class="empty">{t.noValues}</li>}
            </ul>
          )}
        </>
      )}
    </Chip>
  )
}

const TimeChip = ({ query }: { readonly query: Query }) => {
  const t = useTexts().requests
  const { from, range, to } = query
  const zone = registry.get(zoneAtom)
  const [start, end] = [readTime(from), readTime(to)]
  const isChosen = isRange(range) || start !== undefined || end !== undefined
  const remove = () => narrow({ range: "", from: "", to: "" })
  return (
    <Chip
      name={t.time}
      chosen={!isChosen
        ? undefined
        : isRange(range)
        ? t.ranges[range]
        : t.between(start === undefined ? "" : dateTime(start), end === undefined ? "" : dateTime(end))}
      onRemove={remove}
    >
      {(close) => (
        <>
          <ul>
            {(Object.keys(ranges) as ReadonlyArray<keyof typeof ranges>).map((each) => (
              <li key={each}>
                <button
                  type="button"
                  class="quiet"
                  aria-pressed={each === range}
                  onClick={() => {
                    narrow({ range: each, from: "", to: "" })
                    close()
                  }}
                >
                  <span class="value">{t.ranges[each]}</span>
                </button>
              </li>
            ))}
          </ul>
          <form
            class="stack"
            onSubmit={(event) => {
              event.preventDefault()
              const data = new FormData(event.currentTarget)
              const read = (name: string) => timeOf(String(data.get(name) ?? ""), zone)?.toString() ?? ""
              narrow({ range: "", from: read("from"), to: read("to") })
              close()
            }}
          >
            {([["from", t.from(zoneName()), start], ["to", t.to(zoneName()), end]] as const).map((
              [name, label, time]
            ) => (
              <label key={name} class="field">
                <span>{label}</span>
                <input type="datetime-local" step="1" name={name} defaultValue={fieldOf(time, zone)} />
              </label>
            ))}
            <button type="submit">{t.apply}</button>
          </form>
        </>
      )}
    </Chip>
  )
}

/** The chips. `counts` are of the requests that match the filters. */
export const Filters = ({ query, shown: { counts, failure, isOther } }: {
  readonly query: Query
  readonly shown: Shown<RequestFacets>
}) => {
  const t = useTexts().requests
  const [isOpen, setOpen] = useState(false)
  const given = narrowed(query)
  const used = Object.keys(given).length
  // The choice among one upstream or one app is no choice, and clients need not name sessions.
  const least: { readonly [Name in FacetName]?: number } = { upstream: 2, app: 2, session: 1, prompt_cache: 1 }
  const chips = facets.filter(([name, filter]) =>
    given[filter] !== undefined || (counts?.facets[name].length ?? 0) >= (least[name] ?? 0)
  )
  const { ref, shown } = useStill<(typeof facets)[number], HTMLDivElement>(
    chips,
    ([name]) => name,
    [JSON.stringify(given)]
  )
  return (
    <div class="chips" role="group" aria-label={t.filters}>
      <button type="button" class="toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {t.filtersUsed(used)}
      </button>
      <div ref={ref} class={`all ${isOpen ? "open" : ""}`}>
        <TimeChip query={query} />
        {shown.map(([name, filter]) => (
          <FacetChip
            key={name}
            name={name}
            filter={filter}
            query={query}
            counts={counts?.facets[name]}
            failure={failure}
            busy={isOther}
          />
        ))}
        {given["status"] !== undefined && (
          <div class="chip chosen">
            <span class="said">{t.chosen(t.status, t.outcomes(given["status"]))}</span>
            <button
              type="button"
              class="quiet icon-only"
              aria-label={t.removeFilter(t.status)}
              onClick={() => narrow({ status: "" })}
            >
              <Icon name="close" />
            </button>
          </div>
        )}
        {used > 0 && <button type="button" class="quiet" onClick={() => choose(nothingNarrowed)}>{t.removeAll}</button>}
      </div>
      {counts?.complete === false && <p class="hint">{t.partialCounts}</p>}
    </div>
  )
}
