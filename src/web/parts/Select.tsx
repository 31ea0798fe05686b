/**
 * A choice with its label beside it. The label does not hold the options, so that its text is the name alone.
 */
import type { JSX } from "preact"
import { useId } from "preact/hooks"

export const Select = ({ class: kind = "field", label, onValue, options, value, ...rest }: {
  readonly label: string
  readonly value: string
  readonly options: ReadonlyArray<readonly [value: string, text: string]>
  readonly onValue: (value: string) => void
  readonly class?: string
} & Pick<JSX.IntrinsicElements["select"], "aria-invalid" | "aria-describedby" | "disabled">) => {
  const id = useId()
  return (
    <div class={kind}>
      <label for={id}>{label}</label>
      <select {...rest} id={id} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {options.map(([each, text]) => <option key={each} value={each}>{text}</option>)}
      </select>
    </div>
  )
}
