/**
 * The palette: goes to a page, key, model, account or request by typing a part of its name. Opened by Ctrl+K or ⌘K.
 */
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks"
import { read } from "../state/actions.ts"
import { accountName } from "../state/names.ts"
import { linkTo, type Page, pages } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"
import { Dialog } from "./Dialog.tsx"
import { Icon, type IconName } from "./Icon.tsx"

interface Place {
  readonly icon: IconName
  readonly kind: string
  readonly name: string
  readonly hint?: string | undefined
  readonly link: string
}

/** The most places of one kind. */
const mostOfKind = 8

/** Keys that are searched: one page of the list. */
const keysRead = 500

/** The form of ids of requests, in whole or in part. */
const idLike = /^[\w.:-]{6,}$/

const contains = (text: string | null | undefined, part: string): boolean =>
  (text ?? "").toLowerCase().includes(part.toLowerCase())

/** Keys, models and accounts whose name contains `text`. */
const search = async (
  text: string,
  kinds: { readonly account: string; readonly key: string; readonly model: string },
  signal: AbortSignal
) => {
  const page = { page: 1, page_size: mostOfKind, q: text }
  const [keys, { models }, accounts] = await Promise.all([
    read((client) => client["admin-keys"].list({ query: { page: 1, page_size: keysRead } }), signal),
    read((client) => client["admin-models"].list({ query: page }), signal),
    read((client) => client["admin-accounts"].list({ query: page }), signal)
  ])
  return [
    ...keys.items.filter(({ id, name, preview }) => [id, name, preview].some((each) => contains(each, text)))
      .slice(0, mostOfKind)
      .map(({ id, name, preview }): Place => ({
        icon: "keys",
        kind: kinds.key,
        name: name ?? preview,
        hint: name === null ? undefined : preview,
        link: linkTo("keys", id)
      })),
    ...models.filter(({ id, kind }) => kind !== "family" && contains(id, text)).map(({ id }): Place => ({
      icon: "models",
      kind: kinds.model,
      name: id,
      link: linkTo("models", id)
    })),
    ...accounts.items.map((item): Place => ({
      icon: "accounts",
      kind: kinds.account,
      name: accountName(item),
      hint: item.note,
      link: linkTo("accounts", accountName(item))
    }))
  ]
}

export const Palette = ({ onClose, shown }: {
  readonly onClose: () => void
  readonly shown: ReadonlyArray<Page>
}) => {
  const { common: t } = useTexts()
  const [text, setText] = useState("")
  const [found, setFound] = useState<ReadonlyArray<Place>>([])
  const [at, setAt] = useState(0)
  const list = useId()
  const chosen = useRef<HTMLAnchorElement>(null)
  useEffect(() => {
    setAt(0)
    setFound([])
    if (text === "") return
    const reading = new AbortController()
    const timer = setTimeout(() => {
      search(text, t, reading.signal).then(setFound, () => undefined)
    }, 150)
    return () => {
      clearTimeout(timer)
      reading.abort()
    }
  }, [text])
  const places = useMemo((): ReadonlyArray<Place> => [
    ...pages.filter((page) => shown.includes(page) && (text === "" || contains(t.pages[page], text)))
      .map((page): Place => ({ icon: page, kind: t.place, name: t.pages[page], link: linkTo(page) })),
    ...found,
    ...(idLike.test(text)
      ? [{ icon: "requests" as const, kind: t.request, name: text, link: linkTo("requests", text) }]
      : [])
  ], [text, found, shown, t])
  const current = Math.min(at, Math.max(0, places.length - 1))
  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest" }), [current])
  const move = (step: number) => setAt((current + step + places.length) % Math.max(1, places.length))
  const open = (place: Place | undefined) => {
    if (place === undefined) return
    onClose()
    location.hash = place.link
  }
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => open(places[current])
  }
  return (
    <Dialog name={t.goTo} onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label={t.goToHint}
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={places.length === 0 ? undefined : `${list}-${current}`}
        placeholder={t.goToHint}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value.trim())}
        onKeyDown={(event) => {
          const act = keys[event.key]
          if (act === undefined) return
          event.preventDefault()
          act()
        }}
      />
      <div class="palette" id={list} role="listbox" aria-label={t.goTo}>
        {places.map((place, index) => (
          <a
            key={place.link}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === current}
            ref={index === current ? chosen : null}
            href={place.link}
            tabIndex={-1}
            onClick={(event) => {
              event.preventDefault()
              open(place)
            }}
          >
            <Icon name={place.icon} />
            <span class="clip">{place.name}</span>
            {place.hint !== undefined && <span class="hint clip">{place.hint}</span>}
            <span class="hint kind">{place.kind}</span>
          </a>
        ))}
        {places.length === 0 && <p class="empty">{t.nothingFound}</p>}
      </div>
    </Dialog>
  )
}
