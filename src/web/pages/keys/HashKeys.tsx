/**
 * Keeps the configured keys as hashes: a button, absent when no key would change, and the dialog that says what this means.
 */
import { useMemo, useState } from "preact/hooks"
import { isGuessable, keyPreview } from "../../../domain/identity.ts"
import { ChangeButton } from "../../parts/configuration.tsx"
import { ConfirmDialog } from "../../parts/Dialog.tsx"
import { act } from "../../state/actions.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { useTextKeys } from "../configuration.tsx"
import { changedBy } from "./KeyForm.tsx"
import { keyIdOf } from "./keys.ts"

/** The most keys that the dialog names as left. */
const mostLeft = 12

const HashDialog = ({ keys, onClose }: { readonly keys: ReadonlyArray<string>; readonly onClose: () => void }) => {
  const { common, keys: t } = useTexts()
  const left = keys.filter(isGuessable)
  const hashed = keys.filter((key) => !isGuessable(key))
  return (
    <ConfirmDialog
      name={t.hashAll}
      action={t.hashAll}
      items={hashed.map(keyPreview)}
      onClose={onClose}
      onConfirm={() =>
        act((client) => client["admin-keys"].hash({}), {
          done: (reply) => t.hashedNow(reply.hashed, reply.guessable.length),
          subjects: changedBy
        })}
    >
      <p>{t.hashAsk(hashed.length)}</p>
      {left.length > 0 && (
        <p class="notice warn">
          {t.hashLeft(left.length)} {left.slice(0, mostLeft).map((key) => (
            <>
              <a href={linkTo("keys", keyIdOf(key))}>
                <code>{keyPreview(key)}</code>
              </a>
              {" "}
            </>
          ))}
          {left.length > mostLeft && common.andMore(left.length - mostLeft)}
        </p>
      )}
    </ConfirmDialog>
  )
}

/** The button for all keys that are kept as texts and that their hashes would hide. */
export const HashKeys = () => {
  const t = useTexts().keys
  const keys = useTextKeys()
  // As they are when the dialog opens: what it says stays while the change arrives.
  const [asked, setAsked] = useState<ReadonlyArray<string>>()
  const hashes = useMemo(() => keys?.some((key) => !isGuessable(key)) === true, [keys])
  return (
    <>
      {hashes && <ChangeButton onClick={() => setAsked(keys)}>{t.hashAll}</ChangeButton>}
      {asked !== undefined && <HashDialog keys={asked} onClose={() => setAsked(undefined)} />}
    </>
  )
}
