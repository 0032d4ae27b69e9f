// Texts of the sign-in page, in Chinese.
import type { signin as en } from "../en/signin";
import type { SameKeys } from "../texts";

export const signin: SameKeys<typeof en> = {
  title: "登录",
  lead: "登录后才能使用这台主机。",
  token: "令牌",
  token_hint: "管理员令牌在主机数据目录的 admin-token 文件里。",
  token_command: "cat greenroom-data/admin-token",
  show: "显示令牌",
  hide: "隐藏令牌",
  submit: "登录",
  working: "正在登录…",
  with_code: "正在通过链接登录…",
  error_token: "未知的令牌。请检查是否完整，以及是否属于这台主机。",
  error_code: "此链接已使用或已过期。请用令牌登录，或运行 `greenroom open` 获取新链接。",
  error_empty: "请输入令牌。",
  error_rate: "尝试次数过多，请稍后再试。",
  error_forbidden: "主机拒绝此地址。请使用主机打印的地址。",
  error_unreachable: "主机没有响应。它在运行吗？",
  error_other: "登录失败：{message}",
};
