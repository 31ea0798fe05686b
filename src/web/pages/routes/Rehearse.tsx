/**
 * Proves the fallback of a route: chooses the targets that fail for one request of the playground.
 */
import { useState } from "preact/hooks"
import { FormDialog } from "../../parts/Dialog.tsx"
import { Check } from "../../parts/Form.tsx"
import { rehearse } from "../../playground/rehearsal.ts"
import { go } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"

export const Rehearse = ({ name, onClose, targets }: {
  readonly name: string
  readonly targets: ReadonlyArray<string>
  readonly onClose: () => void
}) => {
  const { common, routes: t } = useTexts()
  const [failing, setFailing] = useState<ReadonlySet<string>>(new Set(targets.slice(0, 1)))
  const start = () => {
    const without = targets.filter((each) => failing.has(each))
    return without.length === 0 ? Promise.resolve(t.noneFails) : rehearse(name, without)
  }
  return (
    <FormDialog
      name={common.actionOn(t.rehearse, name)}
      action={t.toPlayground}
      onClose={onClose}
      onSave={start}
      onSaved={() => go("playground")}
    >
      <p>{t.rehearseHint}</p>
      <fieldset class="pick">
        <legend>{t.failing}</legend>
        {targets.map((each) => (
          <Check
            key={each}
            label={each}
            checked={failing.has(each)}
            onChange={({ currentTarget: { checked } }) =>
              setFailing((now) => new Set(checked ? [...now, each] : [...now].filter((other) => other !== each)))}
          />
        ))}
      </fieldset>
    </FormDialog>
  )
}
