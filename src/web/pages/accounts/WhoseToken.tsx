/** Says whose a token of a login is, below where it is given. */
import { useTexts } from "../../state/texts.ts"
import { hasLogin } from "./parseAccounts.ts"

/** `given` is what was typed so far. */
export const WhoseToken = ({ given }: { readonly given: string }) => {
  const t = useTexts().addAccounts
  return hasLogin(given) ? <p class="notice warn">{t.loginToken}</p> : null
}
