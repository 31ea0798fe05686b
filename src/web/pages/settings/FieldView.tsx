/**
 * A setting in the form: an input for the configured value, what it does, and the value in effect while nothing is configured.
 */
import { described, FieldInput, useRange, useRefusal, useWords } from "../../forms/FieldInput.tsx"
import { isSize, plainName, type Setting, textOf, valueOf } from "../../forms/fields.ts"
import { bytes } from "../../parts/format.ts"
import { settingHelp } from "../../state/help.ts"
import { useTexts } from "../../state/texts.ts"

/** A setting's name for people. */
export const useSettingName = () => {
  const t = useTexts().settings
  return ({ path }: Setting): string => t.names(path) ?? plainName(path)
}

export const FieldView = ({ changed, fault, field, onText, text }: {
  readonly field: Setting
  readonly text: string
  readonly changed: boolean
  readonly fault: string | undefined
  readonly onText: (text: string) => void
}) => {
  const { settings: t } = useTexts()
  const words = useWords()
  const name = useSettingName()(field)
  const own = useRefusal()(field, text)
  const range = useRange()(field)
  const id = `setting-${field.path}`
  const refusal = fault ?? own
  const effective = words(field, field.effective)
  // An input without a value shows the value in effect itself; a list has no room for it.
  const differs = field.configured === null
    ? field.type === "map"
    : JSON.stringify(field.configured) !== JSON.stringify(field.effective)
  const size = isSize(field) && own === undefined && text.trim() !== ""
    ? bytes(Number(valueOf(field, text)))
    : undefined
  return (
    <div class={`setting ${changed ? "changed" : ""}`}>
      <label for={id}>
        {name}
        {changed && <span class="hint">{` ${t.changed}`}</span>}
      </label>
      <FieldInput
        id={id}
        field={field}
        text={text}
        onText={onText}
        choice={(value) => field.type === "boolean" ? words(field, value === "true") : value}
        unset={t.byDefault(words(field, field.default ?? field.effective))}
        placeholder={field.type === "map"
          ? t.mapPlaceholder
          : t.byDefault(field.default === null ? effective : textOf(field.default))}
        aria-invalid={refusal !== undefined}
        aria-describedby={`${id}-about`}
      />
      <div class="hint" id={`${id}-about`}>
        {refusal !== undefined && <span class="refused">{refusal}{" "}</span>}
        {field.description !== "" && <p>{described(field.description)}</p>}
        <p>
          {size !== undefined && `${size} · `}
          {differs && `${t.effective(effective)} · `}
          {range !== undefined && `${range} · `}
          <a href={settingHelp(field.path)} target="_blank" rel="noreferrer">
            <code>{field.path}</code>
          </a>
        </p>
      </div>
    </div>
  )
}
