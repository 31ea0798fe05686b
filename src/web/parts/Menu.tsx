/**
 * Menus of actions that are behind a button.
 */
import { useId, useRef } from "preact/hooks"
import { useTexts } from "../state/preferences.ts"
import { Icon } from "./Icon.tsx"

export interface MenuItem {
  readonly text: string
  readonly onClick: () => void
  readonly danger?: boolean
  readonly disabled?: boolean
  /** Whether it is chosen; `undefined` for what is no choice. */
  readonly checked?: boolean
  /** A line above it sets it and what follows apart. */
  readonly apart?: boolean
}

/** Puts the menu below its button, or above it where the window ends. */
const place = (menu: HTMLElement, button: HTMLElement): void => {
  const { bottom, right, top } = button.getBoundingClientRect()
  const { height, width } = menu.getBoundingClientRect()
  menu.style.left = `${Math.max(8, right - width)}px`
  menu.style.top = `${bottom + height + 8 > innerHeight ? Math.max(8, top - height - 4) : bottom + 4}px`
}

/** The actions of a row behind a button. `of` names the row. Arrows move between the actions; Escape closes the menu. */
export const RowMenu = ({ disabled = false, items, of, text }: {
  readonly of: string
  /** The text of the button, in place of the sign of a row's menu. */
  readonly text?: string
  readonly items: ReadonlyArray<MenuItem>
  readonly disabled?: boolean
}) => {
  const t = useTexts().common
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)
  const move = (step: number) => {
    const all = [...menu.current?.querySelectorAll<HTMLButtonElement>("button:enabled") ?? []]
    const now = all.findIndex((each) => each === document.activeElement)
    all[(now + step + all.length) % all.length]?.focus()
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        class={text === undefined ? "quiet icon-only" : ""}
        aria-label={text === undefined ? t.actionOn(t.actions, of) : undefined}
        aria-haspopup="menu"
        disabled={disabled}
        popovertarget={id}
      >
        {text ?? <Icon name="more" />}
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="menu"
        class="menu-list"
        onToggle={(event) => {
          if (event.newState !== "open" || menu.current === null || button.current === null) return
          place(menu.current, button.current)
          menu.current.querySelector<HTMLButtonElement>("button:enabled")?.focus()
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          if (step === undefined) return
          event.preventDefault()
          move(step)
        }}
      >
        {items.map((item) => (
          <button
            key={item.text}
            type="button"
            {...item.checked === undefined
              ? { role: "menuitem" }
              : { role: "menuitemcheckbox", "aria-checked": item.checked }}
            class={`quiet ${item.danger === true ? "danger" : ""} ${item.apart === true ? "apart" : ""}`}
            disabled={item.disabled === true}
            onClick={() => {
              menu.current?.hidePopover()
              item.onClick()
            }}
          >
            {item.checked === undefined ? item.text : (
              <>
                <span class="check-sign" aria-hidden="true">{item.checked ? "✓" : ""}</span>
                {item.text}
              </>
            )}
          </button>
        ))}
      </div>
    </>
  )
}
