/**
 * A row of the accounts: state and last failure, work of the last hour, and what can be done with the account.
 */
import type { ComponentChildren } from "preact"
import { accountSigns, BackIn, Badge, hasFailedTest, stateOf } from "../../parts/Badge.tsx"
import { CurrentWindows } from "../../parts/CurrentWindows.tsx"
import { compact, exactTime, number, percent, shortWhen } from "../../parts/format.ts"
import { Icon } from "../../parts/Icon.tsx"
import { useLayout } from "../../parts/layout.ts"
import { RowMenu } from "../../parts/Menu.tsx"
import { Breaking } from "../../parts/Name.tsx"
import { Row } from "../../parts/Table.tsx"
import { Ago, Since } from "../../parts/Time.tsx"
import type { AccountItem } from "../../state/client.ts"
import { receivedAtom } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { secretOf } from "./dialogs.tsx"

export type Action = "toggle" | "test" | "secret" | "note" | "organization" | "sessions" | "delete"

/** The address of the requests of an account. */
export const requestsOf = (name: string, more: Readonly<Record<string, string>> = {}): string =>
  linkTo("requests", undefined, { account: `"${name}"`, ...more })

/** A share of successes; less than all is never shown as `100 %`. */
const success = (failed: number, all: number): string =>
  failed > 0 && failed < all * 0.005 ? "> 99 %" : percent(all - failed, all)

/** An account as the newer one of the list and the events has it, and when the page received that. */
export const useNewest = (listed: AccountItem, listedAt: number) => {
  const received = useAtom(receivedAtom).get(accountName(listed))
  return received !== undefined && received.at > listedAt
    ? { at: received.at, item: { ...listed, ...received.item } }
    : { at: listedAt, item: listed }
}

/** One line that ends with an ellipsis where the column ends; the whole text is shown on hover. */
const Rest = ({ children, title }: { readonly title: string; readonly children: ComponentChildren }) => (
  <span class="rest hint" title={title}>{children}</span>
)

/** The last error: when it was, what it was, and what the server said. */
const LastError = ({ of: { at, code, message } }: { readonly of: NonNullable<AccountItem["last_error"]> }) => {
  const { inspector } = useTexts()
  const said = message === null ? "" : `: ${message}`
  return (
    <Rest title={`${exactTime(at)} · ${inspector.causes(code)}${said}`}>
      <Ago at={at} /> · {inspector.causes(code)}
      {said}
    </Rest>
  )
}

/**
 * The state in a word; out of rotation also why, since when and until when, after a failed test why and since when; and in rotation the last
 * error, unless the page has it beside the state (`isWhole`).
 */
export const State = ({ at, isWhole = false, item }: {
  readonly item: AccountItem
  readonly at: number
  readonly isWhole?: boolean
}) => {
  const { accounts: t, reason, states } = useTexts()
  const { disabled, health, health_reason, health_since, last_error, last_test, recovery_seconds } = item
  const state = stateOf(item)
  const isHeldBack = health !== "ready" && !disabled
  return (
    <div class="line whole-line">
      <Badge {...accountSigns[state]} text={states[state]} />
      {isHeldBack && health_since !== null && <Since at={health_since} />}
      {isHeldBack && recovery_seconds !== null && <BackIn seconds={recovery_seconds} receivedAt={at} />}
      {isHeldBack && health_reason !== null && <span class="hint reason">{reason(health_reason)}</span>}
      {!isHeldBack && !isWhole && !hasFailedTest(item) && last_error !== null && <LastError of={last_error} />}
      {hasFailedTest(item) && <Badge {...accountSigns.failed} text={states.failed} />}
      {hasFailedTest(item) && last_test?.success === false && (
        <Rest title={t.testFailedAt(exactTime(last_test.at), last_test.message)}>
          <Ago at={last_test.at} />
          {last_test.message !== null && ` · ${last_test.message}`}
        </Rest>
      )}
    </div>
  )
}

/** Where its tokens come from, whom they stand for, until when one serves, and whether the last renewal failed. */
const Credential = ({ of }: { readonly of: NonNullable<AccountItem["credential"]> }) => {
  const t = useTexts().accounts
  const { expires_at, failure, identity, kind } = of
  const ends = expires_at === null ? undefined : t.endsAt(shortWhen(expires_at))
  return (
    <div class="line">
      {failure !== null && <Badge sign="▲" tone="bad" text={t.renewalFailed} />}
      <Rest
        title={[
          `${kind}: ${identity}`,
          ...ends === undefined ? [] : [ends],
          ...failure === null ? [] : [failure.message]
        ].join("\n")}
      >
        {kind} · {identity}
        {ends !== undefined && ` · ${ends}`}
      </Rest>
    </div>
  )
}

/** The cells of its work: attempts, success and last use. */
const useWorkCells = (item: AccountItem): ReadonlyArray<ComponentChildren> => {
  const { accounts: t } = useTexts()
  const { failed_hour, last_used_at, requests_hour } = item
  const name = accountName(item)
  const isFailing = requests_hour > 0 && failed_hour >= requests_hour * 0.2
  return [
    requests_hour === 0
      ? "–"
      : <a href={requestsOf(name)} title={number(requests_hour)}>{compact(requests_hour)}</a>,
    failed_hour === 0 ? success(0, requests_hour) : (
      <a
        class={isFailing ? "bad" : ""}
        href={requestsOf(name, { outcome: "failed" })}
        title={t.failedOf(number(failed_hour), number(requests_hour))}
      >
        {success(failed_hour, requests_hour)}
      </a>
    ),
    last_used_at === null ? <span class="hint">{t.never}</span> : <Ago at={last_used_at} />
  ]
}

export const AccountRow = (
  { busy, hasCredentials, hasOrganizations, isSeveral, item: listed, listedAt, onAction, onSelect, selected, testing }:
    {
      readonly item: AccountItem
      /** When the list was read, in milliseconds of the page's clock. */
      readonly listedAt: number
      /** Several upstreams have accounts. */
      readonly isSeveral: boolean
      /** Accounts of the list have tokens from sources. */
      readonly hasCredentials: boolean
      /** The servers of its upstream seal what only accounts of the same organisation open. */
      readonly hasOrganizations: boolean
      readonly selected: boolean
      /** A change of this account is under way. */
      readonly busy: boolean
      /** Tests are under way. */
      readonly testing: boolean
      readonly onSelect: (selected: boolean) => void
      readonly onAction: (action: Action, item: AccountItem) => void
    }
) => {
  const { accounts: t, common } = useTexts()
  const { at, item } = useNewest(listed, listedAt)
  const name = accountName(item)
  const secret = secretOf(item)
  // A card has room for three lines: why an account gets no requests is said in place of what it does.
  const isBrief = useLayout() === "cards" && stateOf(item) !== "ready"
  const action = (each: Action, text: string) => ({
    id: each,
    text,
    disabled: busy,
    onClick: () => onAction(each, item)
  })
  return (
    <Row
      class={selected ? "chosen" : ""}
      cells={[
        <input
          type="checkbox"
          aria-label={common.actionOn(t.selectColumn, name)}
          checked={selected}
          onChange={(event) => onSelect(event.currentTarget.checked)}
        />,
        <div class="line">
          <a href={linkTo("accounts", name)} title={name}>
            <Breaking text={item.identifier} />
          </a>
          {item.organization !== undefined && (
            <Rest title={`${t.organization}: ${item.organization}`}>{item.organization}</Rest>
          )}
          {item.note !== "" && (
            <button
              type="button"
              class="quiet icon-only"
              aria-label={`${t.note}: ${item.note}`}
              title={item.note}
              onClick={() => onAction("note", item)}
            >
              <Icon name="note" />
            </button>
          )}
        </div>,
        ...isSeveral
          ? [
            item.upstream !== undefined && (
              <a class="of-row" href={linkTo("upstreams", item.upstream)}>{item.upstream}</a>
            )
          ]
          : [],
        <>
          <State item={item} at={at} />
          <CurrentWindows of={item} />
        </>,
        ...hasCredentials
          ? [item.credential !== undefined && <Credential key="credential" of={item.credential} />]
          : [],
        ...[common.of(number(item.in_use), number(item.slots)), ...useWorkCells(item)].map((cell) =>
          isBrief ? null : cell
        ),
        <RowMenu
          of={name}
          items={[
            action("toggle", item.disabled ? t.enable : t.disable),
            { ...action("test", t.test), disabled: busy || testing },
            ...(secret === undefined ? [] : [action("secret", secret === "password" ? t.setPassword : t.setToken)]),
            action("note", t.note),
            ...(hasOrganizations ? [action("organization", t.organization)] : []),
            { ...action("sessions", t.clear), danger: true, apart: true },
            { ...action("delete", t.deleteOne), danger: true }
          ]}
        />
      ]}
    />
  )
}
