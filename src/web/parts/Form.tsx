/**
 * Forms and their fields.
 */
import type { ComponentChildren, JSX, PartialInputHTMLAttributes, Ref } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"

/** Work that a button or form starts: `busy` from its start to its end, so that it is not started twice. */
export const useWork = <Given extends ReadonlyArray<unknown>>(work: (...given: Given) => Promise<unknown>) => {
  const [busy, setBusy] = useState(false)
  const start = (...given: Given): void => {
    setBusy(true)
    void work(...given).finally(() => setBusy(false))
  }
  return [busy, start] as const
}

/**
 * A button that keeps the focus while it is disabled, so that its own press may disable it. A text says why it is disabled.
 */
export const PressButton = ({ children, class: kind, disabled, label, onClick }: {
  readonly class?: string
  /** Its name for screen readers, if its text is not enough. */
  readonly label?: string
  readonly disabled: boolean | string | undefined
  readonly onClick: () => void
  readonly children: ComponentChildren
}) => {
  const isOff = disabled !== undefined && disabled !== false
  return (
    <button
      type="button"
      class={kind}
      title={typeof disabled === "string" ? disabled : undefined}
      aria-label={label}
      aria-disabled={isOff}
      onClick={isOff ? undefined : onClick}
    >
      {children}
    </button>
  )
}

/** Reads a field of a form by its name; an absent field is empty. */
export type ReadField = (name: string) => string

/**
 * A form whose fields `onSubmit` reads by their names, also the name of the button that submits it. `children` draw the fields, with
 * whether a submission runs.
 */
export const Form = ({ children, class: kind = "stack", onSubmit }: {
  readonly class?: string
  readonly onSubmit: (read: ReadField) => Promise<unknown>
  readonly children: (busy: boolean) => ComponentChildren
}) => {
  const [busy, submit] = useWork((form: HTMLFormElement, submitter: HTMLElement | null) => {
    const data = new FormData(form, submitter)
    return onSubmit((name) => String(data.get(name) ?? ""))
  })
  return (
    <form
      class={kind}
      onSubmit={(event) => {
        event.preventDefault()
        submit(event.currentTarget, event.submitter)
      }}
    >
      {children(busy)}
    </form>
  )
}

/** Why a form was refused, announced to screen readers; nothing while `text` is `undefined`. */
export const Failure = ({ text }: { readonly text: string | undefined }) =>
  text === undefined ? null : <p class="notice bad" role="alert">{text}</p>

/** An input with its label above it. */
export const Field = ({ children, grow = false, label }: {
  readonly label: string
  readonly grow?: boolean
  readonly children: ComponentChildren
}) => (
  <label class={`field ${grow ? "grow" : ""}`}>
    <span>{label}</span>
    {children}
  </label>
)

type InputAttributes = Omit<PartialInputHTMLAttributes<HTMLInputElement>, "label" | "list" | "role" | "type">

/** A text of one line with its label above it. */
export const TextField = ({ grow = false, inputRef, label, ...input }: InputAttributes & {
  readonly label: string
  readonly grow?: boolean
  readonly inputRef?: Ref<HTMLInputElement>
}) => (
  <Field grow={grow} label={label}>
    <input type="text" autocomplete="off" {...input} ref={inputRef ?? null} />
  </Field>
)

/** A text of several lines with its label above it. */
export const TextArea = (
  { label, ...area }: { readonly label: string } & Omit<JSX.IntrinsicElements["textarea"], "label">
) => (
  <Field label={label}>
    <textarea {...area} />
  </Field>
)

/** A checkbox with its label beside it. */
export const Check = ({ label, ...input }: InputAttributes & { readonly label: string }) => (
  <label class="check">
    <input type="checkbox" {...input} />
    <span>{label}</span>
  </label>
)

/** A field for searching: `onSearch` is called when typing pauses, so that typing does not redraw a list. The key `/` goes to the first one of a page. */
export const Search = ({ label, onSearch, value }: {
  readonly label: string
  /** The text that is searched for; a text of elsewhere, such as of a link, replaces what was typed. */
  readonly value?: string
  readonly onSearch: (text: string) => void
}) => {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const input = useRef<HTMLInputElement>(null)
  const said = useRef(value)
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => {
    if (value === said.current || input.current === null) return
    said.current = value
    input.current.value = value ?? ""
  }, [value])
  return (
    <TextField
      grow
      label={label}
      spellcheck={false}
      data-filter
      inputRef={input}
      {...value === undefined ? {} : { defaultValue: value }}
      onInput={({ currentTarget }) => {
        clearTimeout(timer.current)
        timer.current = setTimeout(() => {
          said.current = currentTarget.value.trim()
          onSearch(said.current)
        }, 250)
      }}
    />
  )
}

/** A choice with its label beside it. The options stand outside the label, which would otherwise contain their text. */
export const Select = <Value extends string>({ class: kind = "field", label, onValue, options, value, ...rest }: {
  readonly label: string
  readonly value: Value
  readonly options: ReadonlyArray<readonly [value: Value, text: string]>
  readonly onValue: (value: Value) => void
  readonly class?: string
} & Pick<JSX.IntrinsicElements["select"], "aria-invalid" | "aria-describedby" | "disabled">) => {
  const id = useId()
  return (
    <div class={kind}>
      <label for={id}>{label}</label>
      <select {...rest} id={id} value={value} onChange={(event) => onValue(event.currentTarget.value as Value)}>
        {options.map(([each, text]) => <option key={each} value={each}>{text}</option>)}
      </select>
    </div>
  )
}
