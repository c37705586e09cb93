metadata description = 'Monthly budget of the resource group, with a notice when it is nearly used up.'

@description('Name of the budget.')
param budgetName string

@description('Amount a month, in the currency of the subscription.')
param amount int

@description('First day of the first month, such as 2026-01-01. No default: the date of a budget cannot be changed, so that one which follows the calendar would fail every deployment of a later month.')
param startDate string

@description('Action group to notify.')
param actionGroupId string

@description('Addresses to notify besides.')
param emails string[]

resource budget 'Microsoft.Consumption/budgets@2026-06-01' = {
  name: budgetName
  properties: {
    category: 'Cost'
    amount: amount
    timeGrain: 'Monthly'
    timePeriod: {
      startDate: empty(startDate)
        ? fail('budgetStartDate is empty: set ORDERWORKER_BUDGET_START to the first day of this month, such as 2026-01-01, and keep it.')
        : startDate
    }
    notifications: {
      actual80: {
        enabled: true
        operator: 'GreaterThanOrEqualTo'
        threshold: 80
        thresholdType: 'Actual'
        contactEmails: emails
        contactGroups: [actionGroupId]
      }
      forecast100: {
        enabled: true
        operator: 'GreaterThanOrEqualTo'
        threshold: 100
        thresholdType: 'Forecasted'
        contactEmails: emails
        contactGroups: [actionGroupId]
      }
    }
  }
}
