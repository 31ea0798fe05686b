/**
 * Cards, figures and chips: the one frame of what belongs together, a large number with its name, and the one small control of filters,
 * facets and tabs.
 */
import type { ComponentChildren, JSX } from "preact"

/** A frame around what belongs together. */
export const Card = ({ children, class: kind = "", ...rest }:
  & { readonly children: ComponentChildren; readonly class?: string }
  & Pick<JSX.IntrinsicElements["div"], "aria-label" | "role" | "tabIndex">) => (
  <div {...rest as object} class={`card ${kind}`}>{children}</div>
)

type ChipAttributes = Pick<
  JSX.IntrinsicElements["button"],
  "aria-controls" | "aria-expanded" | "aria-label" | "aria-selected" | "id" | "role" | "tabIndex"
>

/** A small button: it chooses if it is pressed or selected, else it does what it says. */
export const Chip = ({ children, class: kind = "", onClick, pressed, ...rest }: ChipAttributes & {
  readonly children: ComponentChildren
  readonly onClick: () => void
  /** Whether it is chosen; `undefined` for a chip that is no choice. */
  readonly pressed?: boolean
  readonly class?: string
}) => (
  <button
    {...rest as object}
    type="button"
    class={`chip ${kind}`}
    {...pressed === undefined ? {} : { "aria-pressed": pressed }}
    onClick={onClick}
  >
    {children}
  </button>
)

/** A large number with its name above, and below what it is of and how it was before. It leads to what it counts. */
export const Figure = ({ children, link, name, of, tone = "" }: {
  readonly name: string
  readonly link: string
  readonly children: ComponentChildren
  readonly of: ComponentChildren
  /** `warn` or `bad`. */
  readonly tone?: string
}) => (
  <a class={`figure ${tone}`} href={link}>
    <span class="hint">{name}</span>
    <strong>{children}</strong>
    <span class="hint">{of}</span>
  </a>
)
