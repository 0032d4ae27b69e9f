// Texts of the sign-in page, in Chinese.
import type { signin as en } from "../en/signin";
import type { SameKeys } from "../texts";

export const signin: SameKeys<typeof en> = {
  title: "登录",
  lead: "登录之后才能查看这台主机上的内容。",
  token: "令牌",
  token_hint: "管理员令牌在主机数据目录的 admin-token 文件里。",
  token_command: "cat greenroom-data/admin-token",
  show: "显示令牌",
  hide: "隐藏令牌",
  submit: "登录",
  working: "正在登录…",
  with_code: "正在用你打开的地址登录…",
  error_token: "这里不认识这个令牌。请检查是否完整，以及是否属于这台主机。",
  error_code: "这个地址已经用过或已过期。请用令牌登录，或用 `greenroom open` 获取新地址。",
  error_empty: "请先填写令牌。",
  error_rate: "尝试次数过多，请稍候再试。",
  error_forbidden: "主机拒绝了这个页面。请用主机打印的地址打开。",
  error_unreachable: "主机没有响应。它在运行吗？",
  error_other: "没有成功：{message}",
};
