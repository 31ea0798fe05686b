/**
 * The page of an account: its state and what can be done with it, its quota and budgets, and what it did in the last 24 hours.
 */
import { useMemo, useState } from "preact/hooks"
import { Card } from "../../parts/Card.tsx"
import { ChangeButton } from "../../parts/configuration.tsx"
import { CurrentWindows } from "../../parts/CurrentWindows.tsx"
import { DeleteDialog } from "../../parts/Dialog.tsx"
import { Facts } from "../../parts/Facts.tsx"
import { PressButton, useWork } from "../../parts/Form.tsx"
import { exactTime, number } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowMenu } from "../../parts/Menu.tsx"
import { Ago, When } from "../../parts/Time.tsx"
import { act, report } from "../../state/actions.ts"
import type { AccountItem } from "../../state/client.ts"
import { useReread } from "../../state/live.ts"
import { accountName, defaultUpstream } from "../../state/names.ts"
import { readOf } from "../../state/reads.ts"
import { registry, useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { useUpstreamsWithOrganizations } from "../../state/upstreams.ts"
import { Day, LastFailures, Touched } from "../nouns/Day.tsx"
import { Gone, Last } from "../nouns/Gone.tsx"
import { State, useNewest } from "./AccountRow.tsx"
import { changedBy, MarkDialog, SecretDialog, secretOf, SessionsDialog } from "./dialogs.tsx"
import { progressAtom, runTests } from "./tests.ts"

const change = (
  action: "delete" | "disable" | "enable",
  name: string,
  t: ReturnType<typeof useTexts>["accounts"]
): Promise<unknown> =>
  act((client) => client["admin-accounts"].batch({ payload: { action, identifiers: [name] } }), {
    done: ({ changed, failed }) =>
      failed > 0 || action === "delete"
        ? t.batchDone(action, changed, failed)
        : t[action === "disable" ? "disabled" : "enabled"](name),
    ...action === "delete"
      ? {}
      : { undo: () => void change(action === "enable" ? "disable" : "enable", name, t) },
    subjects: changedBy
  })

/** Where the tokens of an account come from, until when one serves, and how the last renewal went. */
const credentialFacts = (
  credential: AccountItem["credential"],
  t: ReturnType<typeof useTexts>["accounts"]
): Parameters<typeof Facts>[0]["facts"] => {
  if (credential === undefined) return []
  const { expires_at, failure, identity, kind, renewed_at } = credential
  return [
    [t.credential, `${kind} · ${identity}`],
    [t.tokenEnds, expires_at === null ? undefined : <When key="ends" at={expires_at} />],
    [t.renewed, renewed_at === null ? t.never : <Ago key="renewed" at={renewed_at} />],
    [
      t.renewalFailed,
      failure === null ? undefined : (
        <span key="failed" class="badge bad">
          <Ago at={failure.at} /> · {failure.message}
        </span>
      )
    ]
  ]
}

const Account = ({ isGone, item: listed, listedAt }: {
  readonly isGone: boolean
  readonly item: AccountItem
  /** When it was read, in milliseconds of the page's clock. */
  readonly listedAt: number
}) => {
  const { accounts: t, common, inspector } = useTexts()
  const { at, item } = useNewest(listed, listedAt)
  const [open, setOpen] = useState<"delete" | "note" | "organization" | "secret" | "sessions">()
  const isTesting = useAtom(progressAtom) !== undefined
  const [isRenewing, renew] = useWork(async () => {
    const reply = await act((client) => client["admin-accounts"].renew({ params: { identifier: name } }), {
      subjects: changedBy
    })
    if (reply !== undefined) report(reply.success ? t.renewedNow(name) : `${name}: ${reply.message}`, !reply.success)
  })
  const hasOrganization = useUpstreamsWithOrganizations().has(item.upstream ?? defaultUpstream)
  const { disabled, hash, identifier, in_use, last_error, last_test, last_used_at, note, organization, slots } = item
  const upstream = item.upstream ?? defaultUpstream
  const secret = secretOf(item)
  const hasWindows = item.quota.length + item.budgets.length > 0
  const name = accountName(item)
  const close = () => setOpen(undefined)
  const page = () => (
    <>
      <Heading name={identifier}>
        <PressButton disabled={isTesting} onClick={() => void runTests([name])}>{t.test}</PressButton>
        {item.credential !== undefined && <PressButton disabled={isRenewing} onClick={renew}>{t.renew}</PressButton>}
        {secret !== undefined && (
          <ChangeButton onClick={() => setOpen("secret")}>
            {secret === "password" ? t.setPassword : t.setToken}
          </ChangeButton>
        )}
        <RowMenu
          of={name}
          items={[
            {
              id: "toggle",
              text: disabled ? t.enable : t.disable,
              onClick: () => void change(disabled ? "enable" : "disable", name, t)
            },
            { id: "note", text: t.note, onClick: () => setOpen("note") },
            ...hasOrganization
              ? [{ id: "organization", text: t.organization, onClick: () => setOpen("organization") }]
              : [],
            { id: "sessions", text: t.clear, danger: true, apart: true, onClick: () => setOpen("sessions") },
            { id: "delete", text: t.deleteOne, danger: true, onClick: () => setOpen("delete") }
          ]}
        />
      </Heading>
      <div class={hasWindows ? "halves" : "stack"}>
        <Card>
          <Facts
            facts={[
              [t.state, <State key="state" item={item} at={at} isWhole />],
              [t.upstream, <a key="upstream" href={linkTo("upstreams", upstream)}>{upstream}</a>],
              [t.slots, common.of(number(in_use), number(slots))],
              [t.lastUsed, last_used_at === null ? t.never : <Ago key="used" at={last_used_at} />],
              [
                t.lastError,
                last_error === null ? undefined : (
                  <span key="error" title={exactTime(last_error.at)}>
                    <Ago at={last_error.at} /> · {inspector.causes(last_error.code)}
                    {last_error.message !== null && <p class="hint">{last_error.message}</p>}
                  </span>
                )
              ],
              [
                t.lastTest,
                last_test === null ? undefined : (
                  <span key="test">
                    <Ago at={last_test.at} />
                    {last_test.message !== null && <p class="hint">{last_test.message}</p>}
                  </span>
                )
              ],
              ...credentialFacts(item.credential, t),
              [t.note, note === "" ? undefined : note],
              [t.organization, organization]
            ]}
          />
        </Card>
        {hasWindows && (
          <Section name={t.windows} class="card">
            <CurrentWindows of={item} />
          </Section>
        )}
      </div>
      <Day of={{ account: hash }} requests={{ account: `"${name}"` }} />
      <div class="halves">
        <Touched
          of={{ account: hash }}
          by="model"
          name={t.model}
          linkOf={({ value }) => linkTo("models", value)}
        />
        <Touched of={{ account: hash }} by="key" name={t.key} linkOf={({ value }) => linkTo("keys", value)} />
      </div>
      <LastFailures requests={{ account: `"${name}"` }} />
    </>
  )
  return (
    <>
      {isGone ? <Gone page="accounts" /> : page()}
      {(open === "note" || open === "organization") && <MarkDialog item={item} mark={open} onClose={close} />}
      {open === "secret" && secret !== undefined && <SecretDialog item={item} secret={secret} onClose={close} />}
      {open === "sessions" && <SessionsDialog item={item} onClose={close} />}
      {open === "delete" && (
        <DeleteDialog name={name} onClose={close} onDelete={() => change("delete", name, t)}>
          {t.deleteAsk(1, in_use)}
        </DeleteDialog>
      )}
    </>
  )
}

/** Accounts that are read to find the one of the page: those whose names contain its. */
const mostRead = 100

export const AccountPage = ({ name }: { readonly name: string }) => {
  const identifier = name.slice(name.indexOf("/") + 1)
  const list = useMemo(
    () =>
      readOf("admin-accounts", "list", {
        query: { page: 1, page_size: mostRead, q: identifier },
        reactivityKeys: ["accounts"]
      }),
    [identifier]
  )
  useReread(list)
  return (
    <Loaded atom={list} rows={8}>
      {({ items }) => {
        const item = items.find((each) => accountName(each) === name)
        const result = registry.get(list)
        return (
          <Last item={item} page="accounts">
            {(last, isGone) => (
              <Account item={last} isGone={isGone} listedAt={result._tag === "Success" ? result.timestamp : 0} />
            )}
          </Last>
        )
      }}
    </Loaded>
  )
}
