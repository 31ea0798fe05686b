/**
 * Menus of actions that are behind a button. One menu serves all buttons. It stands outside of the rows, so that a row that is drawn
 * anew leaves it open.
 */
import * as Atom from "effect/reactivity/Atom"
import { useLayoutEffect, useRef } from "preact/hooks"
import { registry, useAtom } from "../state/registry.ts"
import { useTexts } from "../state/texts.ts"
import { useLock } from "./configuration.tsx"
import { follow } from "./follow.ts"
import { Icon, Sign } from "./Icon.tsx"

export interface MenuItem {
  /** What the item is, whatever its text says now; and whether it changes the configuration. */
  readonly id: string
  readonly text: string
  readonly onClick: () => void
  readonly danger?: boolean
  /** A text is why. */
  readonly disabled?: boolean | string
  /** Whether it is chosen; `undefined` for what is no choice. */
  readonly checked?: boolean
  /** A line above it sets it and what follows apart. */
  readonly apart?: boolean
}

/** What changes the configuration, which may be locked. */
const changing: ReadonlySet<string> = new Set([
  "add",
  "delete",
  "edit",
  "note",
  "organization",
  "rotate",
  "secret",
  "toggle"
])

/** What removes something stands last, apart from the rest. */
const dangerLast = (items: ReadonlyArray<MenuItem>): ReadonlyArray<MenuItem> =>
  items.toSorted((a, b) => Number(a.danger === true) - Number(b.danger === true))

const menuId = "menu"

/** The button whose menu is open. */
const buttonAtom = Atom.keepAlive(Atom.make<HTMLButtonElement | undefined>(undefined))

/** Its items, as its row has them now. */
const itemsAtom = Atom.keepAlive(Atom.make<ReadonlyArray<MenuItem>>([]))

/** Puts the menu below its button, or above it where the window ends. */
const place = (menu: HTMLElement, button: HTMLElement): void => {
  const { bottom, right, top } = button.getBoundingClientRect()
  const { height, width } = menu.getBoundingClientRect()
  menu.style.left = `${Math.max(8, right - width)}px`
  menu.style.top = `${bottom + height + 8 > innerHeight ? Math.max(8, top - height - 4) : bottom + 4}px`
}

/** The menu of whichever button was pressed. Arrows move between the actions; Escape closes it. */
export const MenuHost = () => {
  const button = useAtom(buttonAtom)
  const items = useAtom(itemsAtom)
  const menu = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const { current } = menu
    if (button === undefined || current === null) return
    current.showPopover()
    current.querySelector<HTMLButtonElement>("button:enabled")?.focus()
    const stop = follow(current, button, place)
    return () => {
      stop()
      current.hidePopover()
    }
  }, [button])
  const move = (step: number) => {
    const all = [...menu.current?.querySelectorAll<HTMLButtonElement>("button:enabled") ?? []]
    const now = all.findIndex((each) => each === document.activeElement)
    all[(now + step + all.length) % all.length]?.focus()
  }
  return (
    <div
      ref={menu}
      id={menuId}
      popover="auto"
      role="menu"
      class="menu-list"
      onToggle={() => {
        // Another button may have opened it again before the event.
        if (menu.current?.matches(":popover-open") === false) registry.set(buttonAtom, undefined)
      }}
      onKeyDown={(event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
        if (step === undefined) return
        event.preventDefault()
        move(step)
      }}
    >
      {dangerLast(items).map((item) => (
        <button
          key={item.id}
          type="button"
          {...item.checked === undefined
            ? { role: "menuitem" }
            : { role: "menuitemcheckbox", "aria-checked": item.checked }}
          class={`item ${item.danger === true ? "danger" : ""} ${item.apart === true ? "apart" : ""}`}
          disabled={item.disabled !== undefined && item.disabled !== false}
          title={typeof item.disabled === "string" ? item.disabled : undefined}
          onClick={() => {
            menu.current?.hidePopover()
            item.onClick()
          }}
        >
          {item.checked === undefined ? item.text : (
            <>
              <span class="check-sign">{item.checked && <Sign of="✓" />}</span>
              {item.text}
            </>
          )}
        </button>
      ))}
    </div>
  )
}

/** The button of a row's menu. `of` names the row. When the row goes, its menu closes; the table takes the focus that either had. */
export const RowMenu = ({ disabled = false, items: all, of, text }: {
  readonly of: string
  /** The text of the button, in place of the sign of a row's menu. */
  readonly text?: string
  readonly items: ReadonlyArray<MenuItem>
  readonly disabled?: boolean
}) => {
  const t = useTexts().common
  const button = useRef<HTMLButtonElement>(null)
  const opened = useAtom(buttonAtom)
  const isOpen = opened !== undefined && opened === button.current
  const lock = useLock(all.some(({ id }) => changing.has(id)))
  const items = lock === undefined ? all : all.map((item) => changing.has(item.id) ? { ...item, disabled: lock } : item)
  useLayoutEffect(() => {
    if (isOpen) registry.set(itemsAtom, items)
  })
  useLayoutEffect(() => {
    const { current } = button
    const table = current?.closest<HTMLElement>(".table-box")
    return () => {
      if (current === null) return
      const wasOpen = registry.get(buttonAtom) === current
      if (!wasOpen && document.activeElement !== current) return
      if (wasOpen) {
        registry.set(buttonAtom, undefined)
        document.getElementById(menuId)?.hidePopover()
      }
      // What else goes with the row is known when the page is drawn.
      queueMicrotask(() => (table?.isConnected === true ? table : document.querySelector("h1"))?.focus())
    }
  }, [])
  return (
    <button
      ref={button}
      type="button"
      class={text === undefined ? "quiet icon-only" : ""}
      aria-label={text === undefined ? t.actionOn(t.actions, of) : undefined}
      aria-haspopup="menu"
      aria-expanded={isOpen}
      disabled={disabled}
      {
        // A press while its own menu is open closes it: the browser does so for a button with this target alone.
        ...isOpen ? { popovertarget: menuId } : {}
      }
      onClick={(event) => {
        if (isOpen || button.current === null) return
        // The button gets its target before the browser looks for one: this press must not close what it opens.
        event.preventDefault()
        registry.set(itemsAtom, items)
        registry.set(buttonAtom, button.current)
      }}
    >
      {text ?? <Icon name="more" />}
    </button>
  )
}
