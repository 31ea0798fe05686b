/**
 * An account in the list.
 */
import { countdown, number } from "../../parts/format.ts"
import { State } from "../../parts/State.tsx"
import { secondsLeft, stateOf } from "../../state/account.ts"
import { clockAtom, heardAtom } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import type { AccountItem } from "../../state/types.ts"

export type RowAction = "toggle" | "test" | "note" | "sessions" | "delete"

/** How long until the account is tried again. Drawn each second, alone. */
const BackIn = ({ at, item }: { readonly item: AccountItem; readonly at: number }) => {
  const t = useTexts()
  const left = secondsLeft(item, at, useAtom(clockAtom))
  return left === undefined ? null : <span class="hint">{` ${t.backIn(countdown(left))}`}</span>
}

export const Row = ({ busy, item: listed, listedAt, onAction, onSelect, selected }: {
  readonly item: AccountItem
  /** When the list was read. */
  readonly listedAt: number
  readonly selected: boolean
  /** A change of this account is under way. */
  readonly busy: boolean
  readonly onSelect: (selected: boolean) => void
  readonly onAction: (action: RowAction) => void
}) => {
  const t = useTexts().accounts
  const heard = useAtom(heardAtom).get(listed.identifier)
  const newer = heard !== undefined && heard.at > listedAt
  const item = newer ? heard.item : listed
  const id = item.identifier
  const button = (action: RowAction, text: string, name: string, tone = "") => (
    <button
      type="button"
      class={`quiet ${tone}`}
      aria-label={name}
      disabled={busy}
      onClick={() => onAction(action)}
    >
      {text}
    </button>
  )
  return (
    <tr>
      <td class="select">
        <input
          type="checkbox"
          aria-label={t.select(id)}
          checked={selected}
          onChange={(event) => onSelect(event.currentTarget.checked)}
        />
      </td>
      <th scope="row" class="text">
        {id}
        {item.note === "" ? null : <p class="hint">{item.note}</p>}
      </th>
      <td>
        <State state={stateOf(item)} />
        {item.health === "ready" || item.disabled ? null : (
          <>
            <BackIn item={item} at={newer ? heard.at : listedAt} />
            {item.health_reason === null
              ? null
              : <p class="hint clip" title={item.health_reason}>{item.health_reason}</p>}
          </>
        )}
      </td>
      <td class="number">{number(item.in_use)}</td>
      <td class="tools">
        {item.disabled ? button("toggle", t.enable, t.enableOf(id)) : button("toggle", t.disable, t.disableOf(id))}
        {button("test", t.test, t.testOf(id))}
        {button("note", t.note, t.noteOf(id))}
        {button("sessions", t.clear, t.clearOf(id))}
        {button("delete", t.delete, t.deleteOf(id), "danger")}
      </td>
    </tr>
  )
}
