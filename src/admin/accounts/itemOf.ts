/**
 * An account as lists show it.
 */
import type { AccountFacts } from "../../accounts/Accounts.ts"
import type { Account } from "../../config/Account.ts"
import { viewAccount } from "../accountView.ts"
import type { AccountItem } from "./Api.ts"

/** An account with what the pool knows of it; a change of the pool may have taken it away meanwhile. */
export const itemOf = (account: Account, facts: AccountFacts | undefined): typeof AccountItem.Type => ({
  ...viewAccount(account),
  ...(facts === undefined ? {} : { has_token: facts.hasToken, token_preview: facts.tokenPreview }),
  hash: facts?.hash ?? "",
  test_status: facts?.testStatus ?? "",
  health: facts?.health ?? "ready",
  health_reason: facts?.reason ?? null,
  recovery_seconds: facts?.recovery === undefined ? null : Math.ceil(facts.recovery / 1000),
  in_use: facts?.inUse ?? 0,
  disabled: account.disabled,
  note: account.note
})
